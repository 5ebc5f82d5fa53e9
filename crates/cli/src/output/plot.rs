//! `--plot FILE`: a chart as SVG or PNG, depending on the file extension.

use crate::request::Failure;
use anyhow::{Context as _, anyhow};
use fedtvd_lab::figures::{Medium, Scene, png, svg};
use std::path::Path;

/// The format of a chart.
enum Format {
    Svg,
    Png,
}

/// Refuses a file with another extension.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    format(path).map(drop).map_err(Failure::Request)
}

/// Writes a chart.
pub(crate) fn write(path: &Path, scene: &Scene) -> Result<(), Failure> {
    let bytes = match format(path).map_err(Failure::Request)? {
        Format::Png => png(scene).map_err(Failure::work)?,
        Format::Svg => svg(scene, Medium::File).into_bytes(),
    };
    std::fs::write(path, bytes).with_context(|| format!("writing {}", path.display())).map_err(Failure::Work)
}

fn format(path: &Path) -> anyhow::Result<Format> {
    match path.extension().map(|end| end.to_string_lossy().to_lowercase()).as_deref() {
        Some("svg") => Ok(Format::Svg),
        Some("png") => Ok(Format::Png),
        _ => Err(anyhow!("--plot {} must end in .svg or .png", path.display())),
    }
}
