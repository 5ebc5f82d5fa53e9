//! Full disks, missing permissions and changed data: the error is reported, no finished round is lost, and `resume` gives
//! the same bits once the problem is fixed.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::program::{Answer, fedtvd};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FEDTVD: &str = env!("CARGO_BIN_EXE_fedtvd");

/// A table of 60 rows with its schema, and a fast, small run on it.
struct Small {
    folder: tempfile::TempDir,
}

impl Small {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let row = |i: u32| format!("{},{},{},{}\n", i % 3, (i % 3) as f32 + 0.01 * i as f32, i % 7, i % 5);
        let table = (0..60).map(row).collect::<String>();
        fs::write(folder.path().join("table.csv"), format!("label,a,b,c\n{table}")).unwrap();
        let column =
            |name: &str| format!("[[column]]\nname = {name:?}\nkind = \"number\"\ncentre = 2\nscale = 1.5\n");
        let columns: String = ["a", "b", "c"].map(column).concat();
        let schema = format!("[label]\ncolumn = \"label\"\nclasses = [\"0\", \"1\", \"2\"]\n{columns}");
        fs::write(folder.path().join("schema.toml"), schema).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// The arguments of a run with this run directory.
    fn arguments(&self, out: &Path, rounds: u32) -> Vec<String> {
        let table = self.text("table.csv");
        let mut arguments = vec!["run".to_owned(), "--out".to_owned(), out.display().to_string()];
        let settings = [
            format!("data.set={table}"),
            format!("data.schema={}", self.text("schema.toml")),
            format!("rounds={rounds}"),
            "split.kind=iid".to_owned(),
            "clients=6".to_owned(),
            "fraction=0.5".to_owned(),
            "model.name=logistic".to_owned(),
            "strategy.name=scaffold".to_owned(),
        ];
        settings.into_iter().for_each(|setting| arguments.extend(["--set".to_owned(), setting]));
        arguments
    }

    fn run(&self, out: &Path, rounds: u32) -> Answer {
        let arguments = self.arguments(out, rounds);
        fedtvd(&arguments.iter().map(String::as_str).chain(["--quiet"]).collect::<Vec<_>>())
    }

    /// The model of the same run without any problem.
    fn whole(&self, rounds: u32) -> Vec<u8> {
        let out = self.path("whole");
        assert_eq!(self.run(&out, rounds).code, 0);
        model(&out)
    }

    /// The run in a shell, after the command `before`.
    fn run_in_shell(&self, before: &str, out: &Path, rounds: u32) -> Answer {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{before}; exec \"$0\" \"$@\"")]).arg(FEDTVD);
        shell.args(self.arguments(out, rounds)).arg("--quiet");
        answer(&mut shell)
    }
}

fn answer(command: &mut Command) -> Answer {
    let output = command.env_remove("FEDTVD_DATA").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Answer { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

fn resume(out: &Path) -> Answer {
    fedtvd(&["resume", "--quiet", out.to_str().unwrap()])
}

fn model(run: &Path) -> Vec<u8> {
    fs::read(run.join("model.safetensors")).unwrap()
}

/// The number of finished rounds of a run; every line must be complete.
fn rounds(run: &Path) -> usize {
    let text = fs::read_to_string(run.join("rounds.jsonl")).unwrap();
    assert!(text.ends_with('\n'), "the last line is cut off");
    text.lines().inspect(|line| drop(serde_json::from_str::<serde_json::Value>(line).unwrap())).count()
}

fn goes_on_to(out: &Path, whole: &[u8], count: usize) {
    let again = resume(out);
    assert_eq!((again.code, again.err.as_str()), (0, ""));
    assert_eq!((model(out) == whole, rounds(out)), (true, count));
}

#[test]
fn a_file_size_limit_stops_a_run_and_it_resumes_without_the_limit() {
    let small = Small::new();
    let (whole, out) = (small.whole(80), small.path("run"));
    // Blocks of 512 bytes: enough for the first files, too few for all lines. Without the trap, the signal would end the process.
    let stopped = small.run_in_shell("trap '' XFSZ; ulimit -f 60", &out, 80);
    assert_eq!((stopped.code, stopped.out.as_str()), (1, ""));
    let done = rounds(&out);
    let path = out.display();
    assert!(done > 3 && done < 80, "{done}");
    assert_eq!(
        stopped.err,
        format!(
            "fedtvd: writing {path}/rounds.jsonl: File too large (os error 27)\n\
             fedtvd: the {done} finished rounds are saved; once this is fixed, resume with: fedtvd resume {path}\n"
        )
    );
    goes_on_to(&out, &whole, 80);
}

/// Runs a script with the variables FEDTVD, SMALL (its folder) and DISK (a disk of 4 MB) in a mount namespace; `None` if
/// this user is not allowed to mount.
fn on_a_small_disk(small: &Small, script: &str) -> Option<Answer> {
    let mount = "mkdir \"$DISK\" && mount -t tmpfs -o size=4m none \"$DISK\" || exit 77";
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "--map-root-user", "sh", "-c", &format!("{mount}\n{script}")]);
    shell.env("FEDTVD", FEDTVD).env("SMALL", small.folder.path()).env("DISK", small.path("disk"));
    let answer = answer(&mut shell);
    let may = answer.code != 77 && !answer.err.starts_with("unshare:");
    if !may {
        eprintln!("SKIPPED: this user may not mount a small disk: {}", answer.err);
    }
    may.then_some(answer)
}

#[test]
fn a_full_disk_stops_a_run_and_it_resumes_when_there_is_space() {
    const ROUNDS: u32 = 800;
    let small = Small::new();
    let whole = small.whole(ROUNDS);
    let arguments = small.arguments(&small.path("disk/run"), ROUNDS).join("' '");
    // A file leaves 90 KB: space for some rounds, and too little to reach the first checkpoint, after a tenth of them.
    // Only complete lines remain.
    let script = format!(
        "head -c 4102160 /dev/zero > \"$DISK/other\"\n\
         \"$FEDTVD\" '{arguments}' --quiet; echo $?\n\
         cp \"$DISK/run/rounds.jsonl\" \"$SMALL/lines\"\n\
         rm \"$DISK/other\"\n\
         \"$FEDTVD\" resume --quiet --json \"$DISK/run\" > /dev/null; echo $?\n\
         cp -r \"$DISK/run\" \"$SMALL/run\""
    );
    let Some(answer) = on_a_small_disk(&small, &script) else { return };
    assert_eq!(answer.out, "1\n0\n", "{}", answer.err);
    let lines = fs::read_to_string(small.path("lines")).unwrap();
    assert!(lines.ends_with('\n'));
    let done = lines.lines().count();
    assert!(done > 3 && done < ROUNDS as usize / 10, "{done}");
    let path = small.text("disk/run");
    assert_eq!(
        answer.err,
        format!(
            "fedtvd: writing {path}/rounds.jsonl: No space left on device (os error 28)\n\
             fedtvd: the {done} finished rounds are saved; once this is fixed, resume with: fedtvd resume {path}\n"
        )
    );
    assert_eq!((model(&small.path("run")) == whole, rounds(&small.path("run"))), (true, ROUNDS as usize));
}

#[test]
fn a_read_only_disk_stops_a_run_and_it_resumes_when_writable() {
    let small = Small::new();
    let (whole, out) = (small.whole(20), small.path("run"));
    // Stopped halfway.
    let stopped = small.run_in_shell("trap '' XFSZ; ulimit -f 20", &out, 20);
    assert_eq!(stopped.code, 1, "{}", stopped.err);
    let done = rounds(&out);
    let other = small.arguments(&small.path("disk/other"), 20).join("' '");
    let script = format!(
        "cp -r \"$SMALL/run\" \"$DISK/run\"\n\
         mount -o remount,ro \"$DISK\"\n\
         \"$FEDTVD\" resume --quiet \"$DISK/run\"; echo $?\n\
         \"$FEDTVD\" '{other}' --quiet; echo $?\n\
         mount -o remount,rw \"$DISK\"\n\
         wc -l < \"$DISK/run/rounds.jsonl\"\n\
         \"$FEDTVD\" resume --quiet --json \"$DISK/run\" > /dev/null; echo $?\n\
         cp \"$DISK/run/model.safetensors\" \"$SMALL/model\""
    );
    let Some(answer) = on_a_small_disk(&small, &script) else { return };
    assert_eq!(answer.out, format!("1\n1\n{done}\n0\n"), "{}", answer.err);
    let disk = small.text("disk");
    assert_eq!(
        answer.err,
        format!(
            "fedtvd: opening {disk}/run/rounds.jsonl: Read-only file system (os error 30)\n\
             fedtvd: making {disk}/other: Read-only file system (os error 30)\n"
        )
    );
    assert_eq!(fs::read(small.path("model")).unwrap(), whole);
}

#[test]
fn a_file_in_the_way_of_a_run_directory_is_named() {
    let small = Small::new();
    fs::write(small.path("file"), "in the way").unwrap();
    // Of a folder inside the file, the file that cannot be a folder is named.
    for out in ["file", "file/run"] {
        let answer = small.run(&small.path(out), 2);
        let why = format!("fedtvd: making {}: File exists (os error 17)\n", small.text("file"));
        assert_eq!((answer.code, answer.err), (1, why));
    }
    assert_eq!(fs::read_to_string(small.path("file")).unwrap(), "in the way");
}

#[test]
fn a_run_of_another_version_is_left_alone_and_names_the_program_that_made_it() {
    let small = Small::new();
    let (whole, out) = (small.whole(20), small.path("run"));
    assert_eq!(small.run_in_shell("trap '' XFSZ; ulimit -f 20", &out, 20).code, 1);
    let (done, path) = (rounds(&out), out.join("manifest.json"));
    let manifest = fs::read_to_string(&path).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let other = manifest.replace("\"format\": 1", "\"format\": 99").replace(version, "9.8.7");
    fs::write(&path, other).unwrap();
    for subcommand in ["resume", "verify"] {
        let answer = fedtvd(&[subcommand, out.to_str().unwrap()]);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""));
        assert_eq!(
            answer.err,
            format!(
                "fedtvd: {} was made by fedtvd 9.8.7 with version 99 of the run directory; this is fedtvd {version}, \
                 which reads version 1: use the program that made it\n",
                out.display()
            )
        );
    }
    assert_eq!(rounds(&out), done);
    // A run of another program version with the same format is resumed, with a note.
    let older = manifest.replace(&format!("\"version\": \"{version}\""), "\"version\": \"0.0.9\"");
    let mut older: serde_json::Value = serde_json::from_str(&older).unwrap();
    older["fingerprint"]["kernels"] = 99.into();
    fs::write(&path, older.to_string()).unwrap();
    let noted = resume(&out);
    assert!(
        noted.err.starts_with("note: this run was started with fedtvd 0.0.9 and is resumed with "),
        "{}",
        noted.err
    );
    let other = "note: this run was started with other arithmetic (kernels of version 99, here ";
    assert!(noted.err.contains(other), "{}", noted.err);
    assert_eq!((noted.code, model(&out) == whole), (0, true));
}

#[test]
fn a_data_set_that_changed_stops_a_run_until_it_is_back() {
    let small = Small::new();
    let (whole, out) = (small.whole(20), small.path("run"));
    assert_eq!(small.run_in_shell("trap '' XFSZ; ulimit -f 20", &out, 20).code, 1);
    let (done, table) = (rounds(&out), small.path("table.csv"));
    let good = fs::read_to_string(&table).unwrap();
    fs::write(&table, good.replace("1,1.01,", "1,1.02,")).unwrap();
    for subcommand in ["resume", "verify"] {
        let answer = fedtvd(&[subcommand, out.to_str().unwrap()]);
        assert_eq!((answer.code, answer.out.as_str()), (1, ""));
        let start =
            format!("fedtvd: the data set {} changed since the run began: its hash was ", table.display());
        let end = "; restore the old one, or start a new run with another --out\n";
        assert!(answer.err.starts_with(&start) && answer.err.ends_with(end), "{}", answer.err);
    }
    fs::remove_file(&table).unwrap();
    let gone = resume(&out);
    assert_eq!((gone.code, gone.err.contains("table.csv")), (2, true), "{}", gone.err);
    assert_eq!(rounds(&out), done);
    fs::write(&table, good).unwrap();
    goes_on_to(&out, &whole, 20);
}

#[test]
fn updates_that_cannot_be_spooled_stop_a_run_rather_than_change_its_result() {
    const ROUNDS: u32 = 3000;
    let small = Small::new();
    let (whole, out, spool) = (small.whole(ROUNDS), small.path("run"), small.path("spool"));
    fs::create_dir(&spool).unwrap();
    let mut child = Command::new(FEDTVD)
        .args(small.arguments(&out, ROUNDS))
        .args(["--update-memory", "0", "--log", "text"])
        .env("TMPDIR", &spool)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("round 1/"));
    // The folder for temporary files is deleted during the run.
    fs::remove_dir(&spool).unwrap();
    let last: Vec<String> = lines.filter(|line| line.starts_with("fedtvd: ")).collect();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let done = rounds(&out);
    assert_eq!(
        last[0],
        format!(
            "fedtvd: the updates of a round cannot be written to a temporary file in {}: No such file or directory (os error 2); \
             free space there, set TMPDIR to another folder, or keep more updates in memory with --update-memory",
            spool.display()
        )
    );
    assert!(last[1].starts_with(&format!("fedtvd: the {done} finished rounds are saved")), "{}", last[1]);
    assert!(out.join(format!("checkpoint/round-{done:06}")).is_dir(), "they were saved at once");
    goes_on_to(&out, &whole, ROUNDS as usize);
}

#[test]
fn a_log_that_cannot_be_written_does_not_end_a_run() {
    let small = Small::new();
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIPPED: there is no /dev/full here");
        return;
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" 2> /dev/full"]).arg(FEDTVD);
    let answer = answer(shell.args(small.arguments(&small.path("run"), 3)));
    assert_eq!((answer.code, rounds(&small.path("run"))), (0, 3));
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" strategies > /dev/full"]).arg(FEDTVD);
    let unwritten = self::answer(&mut shell);
    assert_eq!(unwritten.code, 1);
    assert_eq!(unwritten.err, "fedtvd: writing to stdout: No space left on device (os error 28)\n");
}
