//! The files inside a tar.gz.

use super::{Flaw, Source};
use std::io::Read;

/// Calls `visit` with the name and content of each file, folders left off the name.
pub fn each_member(
    source: Source,
    mut visit: impl FnMut(&str, &mut dyn Read) -> Result<(), Flaw>,
) -> Result<(), Flaw> {
    let name = source.name().to_owned();
    let broken = |error: std::io::Error| Flaw {
        file: name.clone(),
        offset: 0,
        expected: "a tar.gz".to_owned(),
        found: error.to_string(),
    };
    let mut archive = tar::Archive::new(source.into_reader());
    for member in archive.entries().map_err(broken)? {
        let mut member = member.map_err(broken)?;
        let name = member.path().map_err(broken)?.file_name().map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name.filter(|_| member.header().entry_type().is_file()) {
            visit(&name, &mut member)?;
        }
    }
    Ok(())
}
