//! Replays the inputs that were kept from the fuzzer, without a fuzzer: a check that failed once
//! must hold from then on.
//!
//! Each file of `tests/fuzz/corpus` is the input of the target that its directory names.

#[path = "checks.rs"]
mod checks;

use std::fs;
use std::path::Path;

#[test]
fn every_target_holds_for_its_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (target, check) in checks::TARGETS {
        let mut count = 0;
        for entry in fs::read_dir(corpus.join(target)).unwrap() {
            let path = entry.unwrap().path();
            // Shown only if the check fails.
            println!("{}", path.display());
            check(&fs::read(&path).unwrap());
            count += 1;
        }
        assert!(count > 0, "{target} has no corpus");
    }
}

#[test]
fn every_target_has_its_files() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    for directory in ["corpus", "dictionaries", "src/bin"] {
        let names = fs::read_dir(fuzz.join(directory)).unwrap().map(|entry| {
            let path = entry.unwrap().path();
            path.file_stem().unwrap().to_str().unwrap().to_owned()
        });
        let mut names: Vec<_> = names.collect();
        names.sort();
        let targets = checks::TARGETS.map(|(target, _)| target);
        assert_eq!(names, targets, "{directory}");
    }
}
