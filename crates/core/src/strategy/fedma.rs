//! FedMA: neurons and channels are matched layer by layer before they are averaged, so that clients whose hidden units are in
//! another order do not cancel out. Clients train the layers above a matched one again, over its atoms.
//!
//! ```text
//! round of layer l of L, all clients:
//!   client k: layers below l matched and frozen; trains its own units from l on
//!   server:   l < L: atom i of layer l = Σ_k s_k w_ki / Σ_k s_k over the clients with a row assigned to it
//!                    (assigned by BBP-MAP, see matching/layer.rs; precision of client k: K s_k / σ²)
//!             l = L: row of class c = Σ_k h_k[c] / Σ_i h_i[c] · row c of client k
//! after layer L: a cycle is complete; in the next one each client begins with the atoms that its units were assigned to
//! ```
//!
//! Differences from the published code: an atom is the mean of its rows, as the paper prints, unless `shrink` is set; the prior mean
//! of a bias is 0; all clients begin from the same initial model. The papers derive `popularity=2`; with the small weights of a
//! network that has hardly trained, nearly every row then becomes an atom of its own. After each round there is a whole model: layers that are not matched yet are averaged over the clients
//! that have both units.
//!
//! Wang et al., "Federated Learning with Matched Averaging", ICLR 2020.

use crate::matching::{AtomValue, Matching, Options};
use crate::rules::{Guide, Recipe, Rule, Settings, Spec};
use crate::settings::{Param, Range};
use crate::strategy::fedavg;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "atom i of layer l = Σ_k s_k w_ki / Σ_k s_k over the rows w_ki assigned to it;   last layer: Σ_k h_k[c] / Σ_i h_i[c] · row c",
        choose: "for networks of convolutions and linear layers in silos that are there in every round, and that train long between rounds",
        avoid: "with residual blocks or norms (refused), where clients come and go (one that is missing stops every round), and where label counts are private (or set `label_counts=false`)",
        cost: "the bytes of `fedavg` per layer and round, and more as the widths grow; the server matches rows in time that grows with the square of the widths",
    },
    params: &[
        Param::number(
            "gamma",
            7.0,
            Range::closed(1e-9, 1e9),
            "mass of the process that makes new atoms; the greater, the wider the network grows",
        ),
        Param::number(
            "popularity",
            1.0,
            Range::closed(0.0, 100.0),
            "factor on how much a row prefers atoms that many clients share: 2 in the papers, 1 in their code",
        ),
        Param::number(
            "row_variance",
            1.0,
            Range::closed(1e-9, 1e9),
            "variance of clients' rows around their atom",
        ),
        Param::number("atom_variance", 1.0, Range::closed(1e-9, 1e9), "variance of atoms around 0"),
        Param::whole(
            "sweeps",
            5,
            (0, 1000),
            "times that each client is matched anew after the first assignment",
        ),
        Param::whole(
            "most_atoms",
            700,
            (1, 1_000_000),
            "atoms of a layer from which on a client brings at most one new one",
        ),
        Param::flag(
            "shrink",
            false,
            "whether atoms are drawn towards 0, as the posterior mean is; otherwise they are means",
        ),
        Param::flag(
            "label_counts",
            true,
            "whether clients report label counts, by which they count in the last layer; otherwise they count by their weights",
        ),
    ],
    keeps: &[
        (
            Rule::Combine,
            "the units of all clients are matched, and no other combination knows which correspond",
        ),
        (
            Rule::Local,
            "clients train networks of their own widths, which other rules for training do not know",
        ),
        (
            Rule::Grouping,
            "the units of one network are matched, and further models would need matchings of their own",
        ),
        (Rule::Sharing, "the units of all hidden layers are matched, so all of them travel"),
    ],
    ..Spec::new(
        "fedma",
        "neurons and channels of the clients' networks are matched layer by layer before they are averaged; widths may grow",
        "Wang et al., Federated Learning with Matched Averaging, ICLR 2020",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let options = Options {
        row_variance: settings.number("row_variance"),
        atom_variance: settings.number("atom_variance"),
        mass: settings.number("gamma"),
        popularity: settings.number("popularity"),
        sweeps: settings.whole("sweeps") as usize,
        most_atoms: settings.whole("most_atoms") as usize,
        value: if settings.flag("shrink") { AtomValue::PosteriorMean } else { AtomValue::Mean },
    };
    let label_counts = settings.flag("label_counts");
    let matching = Some(Matching { options, label_counts });
    // A step from the last model to the next needs two of the same widths.
    Recipe { matching, server: Some(fedavg::adopt()), ..Recipe::default() }
}
