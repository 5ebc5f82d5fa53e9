//! `--plot FILE`: a chart as SVG or PNG, by the end of the file's name.

use crate::request::Failure;
use anyhow::{Context as _, anyhow};
use fedtvd_lab::figures::{Medium, Scene, png, svg};
use std::path::Path;

/// How a chart is written.
enum Format {
    Svg,
    Png,
}

/// Refuses a file whose name says no format.
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
        _ => Err(anyhow!("--plot {} ends neither in .svg nor in .png", path.display())),
    }
}
