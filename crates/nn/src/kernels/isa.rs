//! The instruction set, chosen at run time; a plain build runs at full speed anywhere.
//!
//! It is the best one that the machine has, or the one that the environment variable `FEDTVD_INSTRUCTIONS` names: results
//! depend on it, so that a result made on a machine with fewer instructions can be repeated on one with more.

#[cfg(target_arch = "aarch64")]
use super::neon::Neon;
use super::vector::{Plain, Vector};
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512};
use thiserror::Error;

/// Work that is compiled once per instruction set.
///
/// It may use `V`, or be plain loops over lines of `V::LANES` numbers, which the compiler turns into the
/// set's instructions.
pub(crate) trait Work {
    /// Does it; must be `#[inline(always)]`, like all that it calls, to be compiled for the set.
    fn run<V: Vector>(self);
}

/// An instruction set that this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Isa(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Plain,
    /// Sixteen lanes emulated with an array, for testing on machines without AVX-512.
    #[cfg(test)]
    Plain16,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// The environment variable that names the instruction set to use.
const VARIABLE: &str = "FEDTVD_INSTRUCTIONS";

/// The environment asks for instructions that this machine does not have, or that do not exist.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{VARIABLE} is {asked}, which is not one of the instruction sets of this machine: {available}")]
pub struct InstructionsError {
    asked: String,
    available: String,
}

/// The instruction set that trainers use: the one that `FEDTVD_INSTRUCTIONS` names (plain, avx2, avx512 or neon), or the
/// best one of this machine. Part of what results depend on.
pub fn instructions() -> Result<&'static str, InstructionsError> {
    Isa::chosen().map(Isa::name)
}

impl Isa {
    /// The set to use: what the environment asks for, or the best one.
    pub(crate) fn chosen() -> Result<Self, InstructionsError> {
        let asked = std::env::var_os(VARIABLE).filter(|asked| !asked.is_empty());
        Self::of(asked.map(|asked| asked.to_string_lossy().into_owned()))
    }

    /// The set of this name, or the best one.
    fn of(asked: Option<String>) -> Result<Self, InstructionsError> {
        let available = Self::available();
        let Some(asked) = asked else {
            return Ok(Self::best());
        };
        available.iter().find(|isa| isa.name() == asked).copied().ok_or_else(|| {
            let names: Vec<&str> = available.iter().map(|isa| isa.name()).collect();
            InstructionsError { asked, available: names.join(", ") }
        })
    }

    /// The best one that this machine has.
    pub(crate) fn best() -> Self {
        Self::available().pop().expect("plain numbers are always available")
    }

    /// What this machine has, the best one last.
    pub(crate) fn available() -> Vec<Self> {
        let mut sets = vec![Self(Set::Plain)];
        #[cfg(test)]
        sets.push(Self(Set::Plain16));
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                sets.push(Self(Set::Avx2));
            }
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("fma") {
                sets.push(Self(Set::Avx512));
            }
        }
        #[cfg(target_arch = "aarch64")]
        sets.push(Self(Set::Neon));
        sets
    }

    /// Numbers per register, which is samples per lane group.
    pub(crate) fn lanes(self) -> usize {
        match self.0 {
            Set::Plain => Plain::<8>::LANES,
            #[cfg(test)]
            Set::Plain16 => Plain::<16>::LANES,
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => Avx2::LANES,
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => Avx512::LANES,
            #[cfg(target_arch = "aarch64")]
            Set::Neon => Neon::LANES,
        }
    }

    /// The set's name.
    pub(crate) fn name(self) -> &'static str {
        match self.0 {
            Set::Plain => "plain",
            #[cfg(test)]
            Set::Plain16 => "plain16",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Set::Neon => "neon",
        }
    }

    /// Runs work with this set's registers.
    pub(crate) fn run(self, work: impl Work) {
        match self.0 {
            Set::Plain => work.run::<Plain<8>>(),
            #[cfg(test)]
            Set::Plain16 => work.run::<Plain<16>>(),
            // SAFETY: `available` alone makes this value, after detecting the features.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { with_avx2(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { with_avx512(work) },
            #[cfg(target_arch = "aarch64")]
            Set::Neon => work.run::<Neon>(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2(work: impl Work) {
    work.run::<Avx2>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn with_avx512(work: impl Work) {
    work.run::<Avx512>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_set_and_a_wrong_name_is_an_error_that_lists_the_right_ones() {
        for isa in Isa::available() {
            assert_eq!(Isa::of(Some(isa.name().to_owned())), Ok(isa));
        }
        assert_eq!(Isa::of(None).ok(), Isa::available().pop());
        let error = Isa::of(Some("sse9".to_owned())).unwrap_err().to_string();
        let start =
            "FEDTVD_INSTRUCTIONS is sse9, which is not one of the instruction sets of this machine: plain, ";
        assert!(error.starts_with(start), "{error}");
    }
}
