//! `fedtvd models`: the available models.

use crate::request::{Failure, Output};
use clap::Args;
use fedtvd_core::model::Layout;
use fedtvd_nn::models::{ALL, Model, named};
use serde::Serialize;
use std::fmt::Write as _;

/// List the models.
#[derive(Args)]
pub(crate) struct Models {
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
struct View {
    name: &'static str,
    parameters: usize,
    input: [usize; 3],
    classes: usize,
    about: &'static str,
}

impl Models {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let views: Vec<View> = ALL.iter().map(view).collect::<anyhow::Result<_>>().map_err(Failure::Work)?;
        self.output.answer(&views, || text(&views))
    }
}

fn view(model: &'static Model) -> anyhow::Result<View> {
    let Model { name, about, input, classes, .. } = *model;
    let layout = Layout::of(&named(name, input, classes)?)?;
    Ok(View { name, parameters: layout.trainable(), input, classes, about })
}

fn text(views: &[View]) -> String {
    let mut text = String::new();
    for View { name, parameters, input: [c, h, w], classes, about } in views {
        let input = format!("{c}x{h}x{w}");
        let _ = writeln!(text, "{name:12} {parameters:>10}  {input:>8} → {classes:<3}  {about}");
    }
    text += "\nNumbers of parameters are for the input size and classes shown; other sizes are possible.\n\
             Custom model: model.layers = [\"conv 6 5x5\", \"relu\", \"maxpool 2\", \"flatten\", \"linear\"]\n";
    text
}
