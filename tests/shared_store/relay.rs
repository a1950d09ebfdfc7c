//! A relay between a server and its database, which cuts connections at a statement, as a network
//! does, or all of them.
//!
//! It reads as much of PostgreSQL's protocol as it takes to see where a statement is executed, and
//! when its response is complete.

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The statement does not reach the database.
    Before,
    /// The database has carried out the statement, and its response does not reach the server.
    After,
}

#[derive(Debug)]
pub(crate) struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    database: SocketAddr,
    state: Mutex<State>,
    /// Is changed when all connections end.
    generation: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    /// Where to cut, after so many statements more.
    plan: Option<(Cut, usize)>,
    statements: usize,
    is_closed: bool,
}

impl Relay {
    /// A relay to the database on that port of this machine.
    pub(crate) async fn start(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            database: ([127, 0, 0, 1], port).into(),
            state: Mutex::default(),
            generation: watch::Sender::new(0),
        });
        let of_task = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&of_task);
                tokio::spawn(async move {
                    let mut generation = shared.generation.subscribe();
                    tokio::select! {
                        // Ends of connections are expected.
                        _ = pass(&shared, stream) => {}
                        _ = generation.changed() => {}
                    }
                });
            }
        });
        Self {
            address,
            shared,
            accepting,
        }
    }

    pub(crate) const fn port(&self) -> u16 {
        self.address.port()
    }

    /// Cuts the connection of one statement, after so many others.
    pub(crate) fn cut(&self, cut: Cut, after: usize) {
        self.shared.state().plan = Some((cut, after));
    }

    /// Forgets the plan. Returns whether it was carried out before.
    pub(crate) fn has_cut(&self) -> bool {
        self.shared.state().plan.take().is_none()
    }

    /// How many statements there were since the last call.
    pub(crate) fn statements(&self) -> usize {
        mem::take(&mut self.shared.state().statements)
    }

    /// Cuts all connections at once, and accepts none.
    pub(crate) fn close(&self) {
        self.shared.state().is_closed = true;
        self.shared.generation.send_modify(|it| *it += 1);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
        self.close();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the statement that is sent now. Returns whether to cut its connection.
    fn cut_now(&self) -> Option<Cut> {
        let mut state = self.state();
        state.statements += 1;
        match &mut state.plan {
            Some((_, after)) if *after > 0 => {
                *after -= 1;
                None
            }
            plan => plan.take().map(|(cut, _)| cut),
        }
    }
}

/// Passes a connection on, until one side ends it, or it is cut.
async fn pass(shared: &Shared, mut server: TcpStream) -> io::Result<()> {
    if shared.state().is_closed {
        return Ok(());
    }
    let mut database = TcpStream::connect(shared.database).await?;
    server.set_nodelay(true)?;
    database.set_nodelay(true)?;
    let buffer = || Vec::with_capacity(BUFFER_BYTES);
    let (mut sent, mut received) = (buffer(), buffer());
    loop {
        tokio::select! {
            count = server.read_buf(&mut sent) => {
                if count? == 0 {
                    return Ok(());
                }
                let cut = if sent.ends_with(&EXECUTE) { shared.cut_now() } else { None };
                if cut == Some(Cut::Before) {
                    return Ok(());
                }
                database.write_all(&sent).await?;
                sent.clear();
                if cut == Some(Cut::After) {
                    received.clear();
                    while !received.ends_with(&READY) {
                        if database.read_buf(&mut received).await? == 0 {
                            break;
                        }
                    }
                    return Ok(());
                }
            }
            count = database.read_buf(&mut received) => {
                if count? == 0 {
                    return Ok(());
                }
                server.write_all(&received).await?;
                received.clear();
            }
        }
    }
}

/// The end of what a server sends to let the database execute a statement: execute all of it, and
/// say when it is done.
const EXECUTE: [u8; 15] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0, b'S', 0, 0, 0, 4];
/// The end of the response: ready for the next statement, outside of a transaction.
const READY: [u8; 6] = [b'Z', 0, 0, 0, 5, b'I'];
const BUFFER_BYTES: usize = 64 * 1024;
