//! A shard: the part of a grid that one of several processes runs, every n-th run starting with the i-th.

use std::str::FromStr;

/// Shard `index` of `count`; indices start at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// The whole grid.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Whether the run with this index belongs to it.
    pub fn has(self, place: usize) -> bool {
        place % self.count == self.index
    }

    /// The shard given by the environment of a Slurm array job or a Kubernetes indexed job.
    pub fn scheduled(count: usize, variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        if count == 0 {
            return Self::new(0, 0);
        }
        let number = |name: &str| match variable(name) {
            None => Ok(None),
            Some(text) => match text.trim().parse::<usize>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(format!("{name} = {text} is not a number")),
            },
        };
        let (slurm, first) = (number("SLURM_ARRAY_TASK_ID")?, number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0));
        let index = match (slurm, number("JOB_COMPLETION_INDEX")?) {
            (Some(task), _) if task < first => {
                return Err(format!("SLURM_ARRAY_TASK_ID = {task} is below SLURM_ARRAY_TASK_MIN = {first}"));
            }
            (Some(task), _) => task - first,
            (None, Some(index)) => index,
            (None, None) => {
                return Err(
                    "--shards reads the shard index from SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX, but neither \
                            is set; use --shard i/n"
                        .to_owned(),
                );
            }
        };
        Self::new(index, count)
    }

    fn new(index: usize, count: usize) -> Result<Self, String> {
        if index < count {
            return Ok(Self { index, count });
        }
        if count == 0 {
            return Err("the number of shards is 0; it must be at least 1".to_owned());
        }
        let last = count - 1;
        Err(format!("shard {index} of {count} does not exist; shards are numbered from 0 to {last}"))
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('/').and_then(|(i, n)| Some((i.trim().parse().ok()?, n.trim().parse().ok()?)));
        let (index, count) = parts.ok_or_else(|| format!("{text} is not a shard; write i/n, such as 0/4"))?;
        Self::new(index, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_belongs_to_exactly_one_shard() {
        let shards: Vec<Shard> = (0..3).map(|i| format!("{i}/3").parse().unwrap()).collect();
        for place in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(place)).count(), 1, "{place}");
        }
        assert!((0..10).all(|place| Shard::WHOLE.has(place)));
    }

    #[test]
    fn an_invalid_shard_says_what_would_be_valid() {
        assert_eq!(
            "3/3".parse::<Shard>(),
            Err("shard 3 of 3 does not exist; shards are numbered from 0 to 2".to_owned())
        );
        assert_eq!("2".parse::<Shard>(), Err("2 is not a shard; write i/n, such as 0/4".to_owned()));
        assert_eq!(
            "0/0".parse::<Shard>(),
            Err("the number of shards is 0; it must be at least 1".to_owned())
        );
        assert!("-1/3".parse::<Shard>().is_err());
    }

    #[test]
    fn a_scheduler_sets_the_shard() {
        let set = |pairs: &'static [(&str, &str)]| {
            move |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let slurm = set(&[("SLURM_ARRAY_TASK_ID", "7"), ("SLURM_ARRAY_TASK_MIN", "5")]);
        assert_eq!(Shard::scheduled(4, slurm), "2/4".parse());
        assert_eq!(Shard::scheduled(4, set(&[("JOB_COMPLETION_INDEX", "3")])), "3/4".parse());
        assert!(Shard::scheduled(3, set(&[("JOB_COMPLETION_INDEX", "3")])).unwrap_err().contains("0 to 2"));
        assert!(Shard::scheduled(3, set(&[])).unwrap_err().contains("--shard i/n"));
        assert!(
            Shard::scheduled(3, set(&[("SLURM_ARRAY_TASK_ID", "x")]))
                .unwrap_err()
                .contains("is not a number")
        );
    }
}
