//! A job's bytes in two parts: a head of its own, and the numbers that all jobs of the round share.

use fedtvd_core::job::Job;
use prost::bytes::Bytes;

/// Where the head of core's byte form ends.
fn head_end(bytes: &[u8]) -> usize {
    let length = bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
    8 + length as usize
}

/// The head of a job.
pub(crate) fn head(job: &Job) -> Bytes {
    let mut bytes = job.to_bytes();
    bytes.truncate(head_end(&bytes));
    bytes.shrink_to_fit();
    Bytes::from(bytes)
}

/// What follows the head, the same for every job of a round; nothing where there is no job.
pub fn shared(jobs: &[Job]) -> Bytes {
    jobs.first().map_or_else(Bytes::new, |job| {
        let bytes = Bytes::from(job.to_bytes());
        bytes.slice(head_end(&bytes)..)
    })
}
