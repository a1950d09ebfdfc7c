//! What the derive costs at compile time: structs that derive `TableEntity` against the same structs with both derives of serde.
//!
//! The compiler alone is measured, without cargo, on libraries that were built before. The two are compiled in turns, so that
//! both see the same machine, and the ratio of their medians is what is worth reading: of the time that passed, and of the
//! processor time, which other programs on the machine disturb less. Run it with `--help`.

mod compiler;
mod structs;

use std::error::Error;
use std::path::Path;

use clap::{Arg, ArgMatches, Command, value_parser};

use compiler::{Compiler, Cost, Goal};
use structs::Derive;

fn main() -> Result<(), Box<dyn Error>> {
    let matches = command().get_matches();
    let (structs, fields) = (number(&matches, "structs"), number(&matches, "fields"));
    let rounds = number(&matches, "rounds").max(1);
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let compiler = Compiler::prepare(&workspace.canonicalize()?, &workspace.join(target))?;
    println!("{structs} structs of {fields} fields, the median of {rounds} rounds\n");
    println!(
        "| what the compiler does           | serde: s |  CPU s | TableEntity: s |  CPU s | ratio | of CPU |"
    );
    println!(
        "|----------------------------------|---------:|-------:|---------------:|-------:|------:|-------:|"
    );
    for (shown, goal, used) in [
        ("checks the derived code", Goal::Metadata, false),
        ("builds it as a library (debug)", Goal::Library, false),
        ("checks it, each struct used", Goal::Metadata, true),
        ("builds it, each struct used", Goal::Library, true),
    ] {
        let sources = [Derive::Nothing, Derive::Serde, Derive::TableEntity]
            .map(|derive| structs::source(derive, structs, fields, used));
        let mut costs: [Vec<Cost>; 3] = Default::default();
        for _ in 0..rounds {
            for (source, costs) in sources.iter().zip(&mut costs) {
                costs.push(compiler.compile(source, goal)?);
            }
        }
        // What the structs cost without any derive is none's.
        let [bare, serde, ours] = costs.map(|costs| Cost::median(&costs));
        let (serde, ours) = (serde.beyond(bare), ours.beyond(bare));
        println!(
            "| {shown:<32} | {:>8.2} | {:>6.2} | {:>14.2} | {:>6.2} | {:>5.2} | {:>6.2} |",
            serde.passed,
            serde.processor,
            ours.passed,
            ours.processor,
            ours.passed / serde.passed,
            ours.processor / serde.processor,
        );
    }
    Ok(())
}

fn number(matches: &ArgMatches, name: &str) -> usize {
    matches.get_one::<usize>(name).copied().unwrap_or_default()
}

fn command() -> Command {
    let option = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .default_value(default)
            .value_parser(value_parser!(usize))
            .help(help)
    };
    Command::new("derive_cost")
        .about("Measures how long structs that derive TableEntity take to compile, against serde's two derives")
        .arg(option("structs", "100", "How many structs"))
        .arg(option("fields", "20", "How many fields each has, both keys among them"))
        .arg(option("rounds", "5", "How often each is compiled"))
}
