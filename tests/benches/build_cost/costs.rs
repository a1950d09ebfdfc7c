//! The cost of each dependency: the processor time of the crates that a program would not compile
//! without it.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;

use crate::program::{Graph, Program};

/// A table in Markdown of the crates of this workspace and their dependencies.
pub(crate) fn table(program: &Program) -> Result<String, Box<dyn Error>> {
    let (root, graph) = program.graph()?;
    let (all, seconds) = program.costs()?;
    let compiled: f64 = seconds.values().sum();
    let of = |crates: &BTreeSet<String>| -> f64 {
        let times = crates.iter().filter_map(|name| seconds.get(name));
        times.sum()
    };
    let everything = reached(&root, &graph, None);
    let mut rows = Vec::new();
    for (name, dependencies) in graph.iter().filter(|(name, _)| is_own(name)) {
        let own = BTreeSet::from([name.clone()]);
        rows.push((of(&own), name.clone(), "itself".to_owned(), 1));
        for dependency in dependencies.iter().filter(|name| !is_own(name)) {
            let rest = reached(&root, &graph, Some(dependency));
            let only: BTreeSet<_> = everything.difference(&rest).cloned().collect();
            // One that other crates need, too, costs nothing by itself.
            if only.is_empty() {
                continue;
            }
            let by = users(dependency, &graph);
            rows.push((of(&only), dependency.clone(), by, only.len()));
        }
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    rows.dedup();
    let mut table = format!(
        "{} crates, {all:.1} s of processor time: compilers of Rust {compiled:.1}, all others (C, build scripts, linkers of them, cargo) {:.1}\n\n",
        graph.len() - 1,
        all - compiled
    );
    table += "| dependency | of | crates that only it brings | their processor time, s |\n|---|---|--:|--:|\n";
    for (seconds, name, by, crates) in rows {
        writeln!(table, "| {name} | {by} | {crates} | {seconds:.1} |")?;
    }
    Ok(table)
}

/// The crates of this workspace that have a dependency.
fn users(dependency: &str, graph: &Graph) -> String {
    let own = graph.iter().filter(|(name, _)| is_own(name));
    let users = own.filter(|(_, dependencies)| dependencies.contains(dependency));
    let names = users.map(|(name, _)| name.split(' ').next().unwrap_or_default());
    names.collect::<Vec<_>>().join(", ")
}

fn is_own(name: &str) -> bool {
    name.starts_with("tablesdk")
}

/// The crates that are reached without the edges from this workspace to one of them.
fn reached(root: &str, graph: &Graph, without: Option<&str>) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut next = vec![root];
    while let Some(name) = next.pop() {
        if !reached.insert(name.to_owned()) {
            continue;
        }
        let dependencies = graph.get(name).into_iter().flatten().map(String::as_str);
        let is_cut = |dependency: &str| is_own(name) && without == Some(dependency);
        next.extend(dependencies.filter(|dependency| !is_cut(dependency)));
    }
    reached
}
