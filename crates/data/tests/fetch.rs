//! Downloads from a server on this machine that cuts connections, lies and sends less than it says.

use fedtvd_data::set::{Archive, Entry, FetchError, Part, Places, fetch};
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A server: the most that it sends over one connection, and the requests that it got.
struct Server {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(content: Vec<u8>, most: usize, ranges: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}/files", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = answer(stream, &content, most, ranges, &seen);
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("nobody panicked").clone()
    }
}

fn answer(
    mut stream: TcpStream,
    content: &[u8],
    most: usize,
    ranges: bool,
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut start = 0;
    let mut line = String::new();
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        if let Some(from) = line.to_lowercase().strip_prefix("range: bytes=").filter(|_| ranges) {
            start = from.trim().trim_end_matches('-').parse().unwrap_or(0);
        }
        if line.starts_with("GET ") {
            request = line.split(' ').nth(1).unwrap_or("").to_owned();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    asked.lock().expect("nobody panicked").push(format!("{request} from {start}"));
    let (status, body) = match () {
        () if request.contains("missing") => ("404 Not Found", [].as_slice()),
        () if start >= content.len() && start > 0 => ("416 Range Not Satisfiable", [].as_slice()),
        () if start > 0 => ("206 Partial Content", &content[start..]),
        () => ("200 OK", content),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body[..body.len().min(most)])
}

fn digest(content: &[u8]) -> &'static str {
    let digest: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    digest.leak()
}

fn entry(address: &'static str, content: &[u8]) -> Entry {
    let part = Part {
        name: "numbers",
        address: Some(address),
        length: content.len() as u64,
        sha256: digest(content),
    };
    Entry {
        name: "test",
        about: "",
        licence: "",
        shape: [1, 1, 1],
        names: &[],
        train: &[1],
        test: &[1],
        folders: &["test-set"],
        parts: vec![part].leak(),
        archive: None,
    }
}

fn content() -> Vec<u8> {
    (0..100_000u32).flat_map(|x| (x.wrapping_mul(2_654_435_761)).to_le_bytes()).collect()
}

fn get(server: &Server, entry: &Entry, folder: &Path) -> (Result<std::path::PathBuf, FetchError>, Vec<u64>) {
    let mut seen = Vec::new();
    let places = Places::new(Some(folder.to_owned()));
    let got = fetch(entry, &places, Some(&server.address), &mut |progress| seen.push(progress.done));
    (got, seen)
}

#[test]
fn a_connection_that_is_cut_goes_on_where_it_stopped() {
    let content = content();
    let server = Server::new(content.clone(), 150_000, true);
    let folder = tempfile::tempdir().unwrap();
    let (got, seen) = get(&server, &entry("http://official/numbers", &content), folder.path());
    let path = got.unwrap();
    assert_eq!(path, folder.path().join("test-set"));
    assert_eq!(std::fs::read(path.join("numbers")).unwrap(), content);
    assert!(!path.join("numbers.part").exists());
    assert_eq!(
        server.asked(),
        ["/files/numbers from 0", "/files/numbers from 150000", "/files/numbers from 300000"]
    );
    assert!(seen.is_sorted() && seen.last() == Some(&400_000), "{seen:?}");
    // Correct files are not requested again.
    get(&server, &entry("http://official/numbers", &content), folder.path()).0.unwrap();
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn a_part_left_by_an_earlier_attempt_is_used_and_a_foreign_one_is_thrown_away() {
    let content = content();
    for (left, asked) in [
        (content[..70_000].to_vec(), vec!["/files/numbers from 70000"]),
        (vec![7; 70_000], vec!["/files/numbers from 70000", "/files/numbers from 0"]),
    ] {
        let server = Server::new(content.clone(), usize::MAX, true);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test-set");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("numbers.part"), left).unwrap();
        get(&server, &entry("http://official/numbers", &content), folder.path()).0.unwrap();
        assert_eq!(std::fs::read(path.join("numbers")).unwrap(), content);
        assert_eq!(server.asked(), asked);
    }
}

#[test]
fn a_server_that_cannot_resume_starts_again() {
    let content = content();
    let server = Server::new(content.clone(), usize::MAX, false);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test-set");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("numbers.part"), &content[..1000]).unwrap();
    get(&server, &entry("http://official/numbers", &content), folder.path()).0.unwrap();
    assert_eq!(std::fs::read(path.join("numbers")).unwrap(), content);
}

#[test]
fn other_bytes_than_the_published_ones_are_not_kept() {
    let server = Server::new(b"something else".to_vec(), usize::MAX, true);
    let folder = tempfile::tempdir().unwrap();
    let error = get(&server, &entry("http://official/numbers", &content()), folder.path()).0.unwrap_err();
    assert!(error.to_string().contains("expected numbers with SHA-256"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path().join("test-set")).unwrap().count(), 0);
}

#[test]
fn without_a_server_it_says_where_to_put_the_file() {
    let server = Server::new(Vec::new(), usize::MAX, true);
    let folder = tempfile::tempdir().unwrap();
    let error = get(&server, &entry("http://official/missing", &content()), folder.path()).0.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the server answers 404 Not Found"), "{text}");
    assert!(text.contains("put the file missing into") && text.contains("test-set"), "{text}");
    assert!(!text.contains(".part"), "nothing has come: {text}");
    // A partial download is named in the message.
    let part = folder.path().join("test-set/missing.part");
    std::fs::write(&part, "the start").unwrap();
    let error = get(&server, &entry("http://official/missing", &content()), folder.path()).0.unwrap_err();
    assert!(error.to_string().contains(&format!("is kept in {}", part.display())), "{error}");
}

#[test]
fn an_archive_is_checked_by_what_is_in_it() {
    let inside = content();
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    let mut header = tar::Header::new_gnu();
    header.set_size(inside.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, "folder/numbers", inside.as_slice()).unwrap();
    let packed = tar.into_inner().unwrap().finish().unwrap();
    let server = Server::new(packed, usize::MAX, true);
    let archive = Some(Archive { name: "set.tar.gz", address: "http://official/set.tar.gz" });
    let folder = tempfile::tempdir().unwrap();
    let right = Entry { archive, ..entry("", &inside) };
    get(&server, &right, folder.path()).0.unwrap();
    assert!(folder.path().join("set.tar.gz").is_file());
    std::fs::remove_file(folder.path().join("set.tar.gz")).unwrap();
    let wrong = Entry { archive, ..entry("", b"other") };
    assert!(matches!(get(&server, &wrong, folder.path()).0, Err(FetchError::Checksum { .. })));
}
