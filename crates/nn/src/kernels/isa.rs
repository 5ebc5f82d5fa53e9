//! The instruction set, chosen once at run time; a plain build runs at full speed anywhere.

#[cfg(target_arch = "aarch64")]
use super::neon::Neon;
use super::vector::{Plain, Vector};
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512};

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

impl Isa {
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
