//! The compile time of structs that derive `TableEntity`, compared with the same structs and both
//! derives of serde.
//!
//! It measures the compiler alone, without cargo, in turns. Compare the ratios of the medians.
//! Other programs on the machine disturb the processor time less than the elapsed time.

mod compiler;
mod structs;

use std::error::Error;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use compiler::{Compiler, Cost, Goal};
use structs::Derive;

fn main() -> Result<(), Box<dyn Error>> {
    let matches = command().get_matches();
    let (structs, fields) = (number(&matches, "structs"), number(&matches, "fields"));
    let rounds = number(&matches, "rounds").max(1);
    let compiler = Compiler::new()?;
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
        // Less the time for the structs without a derive.
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
        .about("Measures the compile time of structs that derive TableEntity, compared with serde's two derives")
        .arg(option("structs", "100", "How many structs"))
        .arg(option("fields", "20", "How many fields each has, both keys among them"))
        .arg(option("rounds", "5", "How often each is compiled"))
        // `cargo bench` passes it.
        .arg(Arg::new("bench").long("bench").hide(true).action(ArgAction::SetTrue))
}
