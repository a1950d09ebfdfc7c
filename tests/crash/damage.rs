//! Damage below the store: copies of a data directory, taken at any moment of a history, with
//! truncated files or changed bytes.
//!
//! The process is halted during the copy, so that the copy equals the state after a crash at that
//! moment. When the server opens the copy, the copy must contain the acknowledged writes, with or
//! without the write that was in flight. Otherwise the server refuses the directory with a message
//! that names it, or the damaged data cannot be read. The directory never contains any other state.
//! The seed is fixed and printed; `TABLESDK_DAMAGE_SEED` sets it, or makes it `random`, and
//! `TABLESDK_DAMAGE_COPIES` takes more copies.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;
use harness::directory::{copy_directory, files_below, used_length};
use harness::{Employee, client, seed, setting};
use tablesdk_server::{DataDirectory, Durability, TableServer};

use crate::content;
use crate::process::{JSON, Server};

const COPIES: usize = 3;
/// How often each copy is damaged.
const DAMAGES: usize = 12;
/// So much of the end of a file is likely to be new.
const NEWEST_BYTES: u64 = 64 * 1024;

/// The ages of the employees, by row key.
type Rows = BTreeMap<String, i32>;

#[derive(Default, Debug)]
struct Tally {
    refused: usize,
    unreadable: usize,
    whole: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_directories_never_lose_writes_silently() {
    let mut rng = Rng::with_seed(seed("TABLESDK_DAMAGE_SEED"));
    let copies = setting("TABLESDK_DAMAGE_COPIES").unwrap_or(COPIES);
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("directory");
    let mut server = Arc::new(Server::start(&directory).await);
    assert_eq!(server.create("Tests").await, 201);

    let mut rows = Rows::new();
    let mut tally = Tally::default();
    for copy in 0..copies {
        for _ in 0..rng.usize(10..250) {
            let (path, body, after) = change(&mut rng, &rows);
            let response = server.send(&format!("PUT {path}"), &[JSON], &body).await;
            assert_eq!(response.unwrap().status, 204);
            rows = after;
        }
        // One more is in flight.
        let (path, body, after) = change(&mut rng, &rows);
        let in_flight = tokio::spawn({
            let server = Arc::clone(&server);
            async move { server.send(&format!("PUT {path}"), &[JSON], &body).await }
        });
        for _ in 0..rng.usize(..200) {
            tokio::task::yield_now().await;
        }
        server.signal("STOP");
        let taken = place.path().join("taken");
        copy_directory(&directory, &taken);
        server.signal("CONT");
        assert_eq!(in_flight.await.unwrap().unwrap().status, 204);

        for damage in 0..=DAMAGES {
            let damaged = place.path().join("damaged");
            copy_directory(&taken, &damaged);
            // The first is left as it is.
            let what = (damage > 0).then(|| harm(&damaged, &mut rng));
            judge(&damaged, &[&rows, &after], what.as_deref(), &mut tally).await;
            fs::remove_dir_all(&damaged).unwrap();
        }
        fs::remove_dir_all(&taken).unwrap();
        rows = after;
        if copy % 3 == 2 {
            // A new journal, which has not been extended beyond what it needs.
            server.kill();
            server.wait_until_dead().await;
            server = Arc::new(Server::start(&directory).await);
        }
    }
    println!("{tally:?}");
    assert!(tally.refused > 0 && tally.whole > copies, "{tally:?}");
}

fn change(rng: &mut Rng, rows: &Rows) -> (String, String, Rows) {
    let row = format!("r{}", rng.u8(..40));
    let value = rng.i32(..);
    let path = format!("/Tests(PartitionKey='p',RowKey='{row}')");
    let length = rng.usize(..30_000);
    let noise: String = (0..length).map(|_| rng.alphanumeric()).collect();
    let body = format!(r#"{{"Age":{value},"Name":"{noise}"}}"#);
    let mut after = rows.clone();
    after.insert(row, value);
    (path, body, after)
}

/// Opens the data directory, and checks that it contains one of the expected states.
async fn judge(directory: &Path, expected: &[&Rows], harm: Option<&str>, tally: &mut Tally) {
    let shown = harm.unwrap_or("nothing was harmed");
    // A test that fails shows what it printed.
    println!("{shown}");
    let builder = TableServer::builder().data(directory, Durability::Sync);
    let server = match builder.in_process() {
        Ok(server) => server,
        Err(error) => {
            let text = error.to_string();
            assert!(harm.is_some(), "{text}");
            let path = directory.display().to_string();
            assert!(text.contains(&path), "{shown}: {text}");
            tally.refused += 1;
            return;
        }
    };
    let employees = client(&server).table("Tests").query::<Employee>();
    match employees.values().collect().await {
        Ok(employees) => {
            let employees = employees.into_iter();
            let found: Rows = employees.map(|it| (it.id, it.age)).collect();
            assert!(
                expected.contains(&&found),
                "{shown}: {} rows are there, and not those of {} or {}",
                found.len(),
                expected[0].len(),
                expected[1].len()
            );
            tally.whole += 1;
        }
        Err(error) => {
            assert!(harm.is_some(), "{error}");
            tally.unreadable += 1;
        }
    }
}

/// Cuts a file short or changes a byte of it: any file, but mostly the newest ones.
fn harm(directory: &Path, rng: &mut Rng) -> String {
    let mut files = files_below(directory);
    files.retain(|file| used_length(file) > 0);
    files.sort_by_key(|file| fs::metadata(file).unwrap().modified().unwrap());
    let newest = if rng.bool() { 3 } else { files.len() };
    let path = &files[files.len() - 1 - rng.usize(..newest.min(files.len()))];
    let length = used_length(path);
    // Mostly near the end, where the newest writes are.
    let newest = if rng.u8(..4) == 0 {
        length
    } else {
        NEWEST_BYTES
    };
    let at = length - 1 - rng.u64(..newest.min(length));
    let shown = path.strip_prefix(directory).unwrap().display();
    let mut file = File::options().read(true).write(true).open(path).unwrap();
    if rng.u8(..3) == 0 {
        file.set_len(at).unwrap();
        return format!("{shown} was cut at {at} of {length}");
    }
    let bit = 1_u8 << rng.u8(..8);
    let mut byte = [0];
    file.seek(SeekFrom::Start(at)).unwrap();
    file.read_exact(&mut byte).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&[byte[0] ^ bit]).unwrap();
    format!("bit {bit} of {shown} was changed at {at} of {length}")
}

#[tokio::test]
async fn check_finds_a_changed_byte_that_changes_what_is_read() {
    let mut rng = Rng::with_seed(seed("TABLESDK_DAMAGE_SEED"));
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("directory");
    // Opened twice, so that there is more than one journal or table.
    for round in 0..2 {
        let server = TableServer::builder().data(&directory, Durability::Sync);
        let server = server.in_process().unwrap();
        let table = client(&server).table("Tests");
        table.create_table().if_missing().await.unwrap();
        for row in 0..60 {
            let employee = Employee::new(&format!("{round}-{row}"), "Ada", rng.i32(..));
            table.insert(&employee).await.unwrap();
        }
    }
    let written = content(&directory);
    let report = DataDirectory::new(&directory).check(|_| {}).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!((report.tables, report.entities), (1, 120));
    let files = files_below(&directory);
    assert!(files.len() > 5, "{files:?}");
    for file in files {
        let length = used_length(&file);
        let name = file.strip_prefix(&directory).unwrap();
        for _ in 0..12.min(length) {
            let copy = place.path().join("copy");
            copy_directory(&directory, &copy);
            let at = rng.u64(..length);
            let mut bytes = fs::read(copy.join(name)).unwrap();
            bytes[usize::try_from(at).unwrap()] ^= 1 << rng.u8(..8);
            fs::write(copy.join(name), bytes).unwrap();
            let shown = format!("{} at {at}", name.display());
            let reported = match DataDirectory::new(&copy).check(|_| {}) {
                Ok(report) => report.problems.join("\n"),
                Err(error) => error.to_string(),
            };
            if reported.is_empty() {
                assert_eq!(content(&copy), written, "{shown}");
            }
            fs::remove_dir_all(&copy).unwrap();
        }
    }
}
