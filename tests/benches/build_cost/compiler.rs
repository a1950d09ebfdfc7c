//! The processor time of compilers. This program is the compiler's wrapper while cargo builds: it
//! runs the compiler, and adds a line to a file.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The file to which the wrapper adds its line.
const LOG: &str = "TABLESDK_COMPILERS";

/// A command of cargo whose compilers are measured.
pub(crate) fn measured<'a>(
    command: &'a mut Command,
    log: &Path,
) -> Result<&'a mut Command, Box<dyn Error>> {
    let wrapper = std::env::current_exe()?;
    Ok(command.env("RUSTC_WRAPPER", wrapper).env(LOG, log))
}

/// Runs a compiler if this program is the wrapper of one.
pub(crate) fn wrapped() -> Option<ExitCode> {
    let log = std::env::var_os(LOG)?;
    let mut arguments = std::env::args_os().skip(1);
    let compiler = arguments.next()?;
    let arguments: Vec<_> = arguments.collect();
    let status = Command::new(compiler).args(&arguments).status().ok()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    // A version that is asked for has no crate.
    if let Some(name) = crate_name(&arguments) {
        let seconds = processor_time_of_children().ok()?;
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .ok()?;
        file.write_all(format!("{seconds} {name}\n").as_bytes())
            .ok()?;
    }
    Some(ExitCode::from(code.unwrap_or(1)))
}

/// The package of a crate that is compiled, and its version, from the variables that cargo sets.
fn crate_name(arguments: &[OsString]) -> Option<String> {
    arguments
        .iter()
        .find(|argument| *argument == "--crate-name")?;
    let variable = |name| std::env::var(name).ok();
    let (name, version) = variable("CARGO_PKG_NAME").zip(variable("CARGO_PKG_VERSION"))?;
    Some(format!("{name} v{version}"))
}

/// The seconds of each package.
pub(crate) fn read(log: &Path) -> Result<BTreeMap<String, f64>, Box<dyn Error>> {
    let mut seconds = BTreeMap::new();
    for line in fs::read_to_string(log)?.lines() {
        let (time, name) = line.split_once(' ').ok_or("a line without a name")?;
        *seconds.entry(name.to_owned()).or_default() += time.parse::<f64>()?;
    }
    Ok(seconds)
}

/// The processor time, in seconds, of all programs that this one has run.
pub(crate) fn processor_time_of_children() -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/stat")?;
    // The name may have spaces, and ends in a parenthesis. The fields are `cutime` and `cstime`, in
    // ticks of 10 ms.
    let (_, fields) = text.rsplit_once(')').ok_or("a malformed /proc/self/stat")?;
    let mut fields = fields.split_whitespace().skip(13);
    let mut next = || fields.next().ok_or("a malformed /proc/self/stat");
    Ok((next()?.parse::<f64>()? + next()?.parse::<f64>()?) / 100.0)
}
