//! Which clients share a model, round by round, under strategies with several models.

use fedtvd_core::round::{ClientId, RoundRecord};

/// Rounds in a row after which the same clients share each model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clusters {
    /// The first of these rounds.
    pub first: u32,
    /// The last of them.
    pub last: u32,
    /// The branches that have clients, by number, and their clients.
    pub branches: Vec<(u32, Vec<ClientId>)>,
}

impl Clusters {
    /// The branches and their clients in words, such as `0: 1 3 · 2: 0 2`.
    pub fn words(&self) -> String {
        let branch = |(branch, clients): &(u32, Vec<ClientId>)| {
            let clients: Vec<String> = clients.iter().map(ToString::to_string).collect();
            format!("{branch}: {}", clients.join(" "))
        };
        self.branches.iter().map(branch).collect::<Vec<_>>().join(" · ")
    }

    /// The rounds in words, such as `3` or `4 to 20`.
    pub fn rounds(&self) -> String {
        if self.first == self.last {
            self.first.to_string()
        } else {
            format!("{} to {}", self.first, self.last)
        }
    }
}

/// The clusters of a run with these rounds; empty under a strategy with one model.
pub(crate) fn clusters(lines: &[RoundRecord]) -> Vec<Clusters> {
    let mut all: Vec<Clusters> = Vec::new();
    for line in lines.iter().filter(|line| !line.branches.is_empty()) {
        let with_clients = line.branches.iter().filter(|branch| !branch.clients.is_empty());
        let branches: Vec<_> = with_clients.map(|branch| (branch.branch, branch.clients.clone())).collect();
        match all.last_mut().filter(|last| last.branches == branches) {
            Some(last) => last.last = line.round,
            None => all.push(Clusters { first: line.round, last: line.round, branches }),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedtvd_core::round::BranchRecord;

    fn line(round: u32, groups: &[&[ClientId]]) -> RoundRecord {
        let branch = |(branch, clients): (usize, &&[ClientId])| BranchRecord {
            branch: branch as u32,
            clients: clients.to_vec(),
            parent: None,
            drift: None,
            unchanged: None,
            parted: None,
            accuracy: None,
            loss: None,
        };
        RoundRecord {
            round,
            branches: groups.iter().enumerate().map(branch).collect(),
            ..RoundRecord::default()
        }
    }

    #[test]
    fn rounds_with_the_same_clusters_are_one_line_and_empty_branches_are_left_out() {
        let lines = [
            line(1, &[&[0, 1, 2], &[]]),
            line(2, &[&[0, 1, 2], &[]]),
            line(3, &[&[1], &[0, 2]]),
            line(4, &[&[0, 1, 2], &[]]),
        ];
        let found = clusters(&lines);
        let shown: Vec<(String, String)> = found.iter().map(|own| (own.rounds(), own.words())).collect();
        let expected = [("1 to 2", "0: 0 1 2"), ("3", "0: 1 · 1: 0 2"), ("4", "0: 0 1 2")];
        assert_eq!(shown, expected.map(|(rounds, words)| (rounds.to_owned(), words.to_owned())));
        assert!(clusters(&[RoundRecord::default()]).is_empty());
    }
}
