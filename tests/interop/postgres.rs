//! Runs a PostgreSQL with an empty database until this process ends, for scripts: prints its URL.

fn main() {
    let database = harness::postgres::database();
    let database = database.unwrap_or_else(|| std::process::exit(3));
    println!("database: {}", database.url());
    // Scripts end it with a signal.
    loop {
        std::thread::park();
    }
}
