//! Files that only their owner may read, such as private keys: complete or not there at all.

use fedtvd_run::directory::FileError;
use fedtvd_run::directory::files::{doing, sync};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// Writes a file that only its owner may read, under a temporary name that is then replaced.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), FileError> {
    let partial = path.with_extension("partial");
    // The mode of a file is set when it is created; one that is left over may have another.
    let _ = std::fs::remove_file(&partial);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&partial).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| std::fs::rename(&partial, path)).map_err(doing("writing", path))?;
    path.parent().map_or(Ok(()), sync)
}
