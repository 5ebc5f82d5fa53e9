//! Loads a table and prints seconds, rows, and peak memory as a multiple of the file's size, as JSON.
//!
//! `cargo run --release -p fedtvd-data --example load_table -- TABLE [SCHEMA]`; `bench/tables.sh` makes the table.

use fedtvd_data::set::{DataOptions, Places};
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let set = arguments.next().ok_or("name a table")?;
    let schema = arguments.next().map(PathBuf::from);
    let bytes = std::fs::metadata(&set)?.len();
    let started = Instant::now();
    let loaded = DataOptions { set, schema, ..DataOptions::default() }.load(&Places::new(None))?;
    let seconds = started.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let peak = 1024.0 * peak.and_then(|peak| peak.trim().parse().ok()).unwrap_or(f64::NAN);
    let (rows, inputs) = (loaded.samples.rows(), loaded.samples.shape()[0]);
    println!(
        "{{\"rows\": {rows}, \"inputs\": {inputs}, \"file_bytes\": {bytes}, \"seconds\": {seconds:.2}, \
         \"peak_memory_per_file_byte\": {:.2}}}",
        peak / bytes as f64
    );
    Ok(())
}
