//! Clients that do harm, each with a socket and bytes of its own making.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::subject::Subject;

/// The behaviour of attackers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attack {
    /// They connect, more often than the program may open files, and send nothing.
    Silent,
    /// As many send the half of a head.
    HalfHeads,
    /// They send requests with a bad signature, as fast as they are refused.
    BadCredentials,
    /// They announce bodies of 4 MiB with a signature that may read in another account, and send
    /// none.
    EmptyBodies,
    /// They ask for pages of 4 MiB, and do not read them.
    Unread,
}

impl Attack {
    pub(super) const ALL: [Self; 5] = [
        Self::Silent,
        Self::HalfHeads,
        Self::BadCredentials,
        Self::EmptyBodies,
        Self::Unread,
    ];

    /// That of the variant in lower case, such as `halfheads`.
    pub(super) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    fn connections(self, open_files: u64) -> usize {
        match self {
            Self::Silent | Self::HalfHeads => usize::try_from(open_files * 6 / 5).unwrap(),
            Self::BadCredentials | Self::EmptyBodies => 64,
            Self::Unread => 300,
        }
    }

    /// The bytes that each of them sends.
    fn bytes(self, subject: &Subject) -> Vec<u8> {
        let host = subject.address();
        let head =
            |line: &str| format!("{line} HTTP/1.1\r\nHost: {host}\r\nx-ms-version: 2019-02-02\r\n");
        match self {
            Self::Silent => String::new(),
            Self::HalfHeads => head("GET /honest/Orders()") + "X-More: ",
            Self::BadCredentials => {
                head("GET /honest/Orders()")
                    + "x-ms-date: Fri, 15 Mar 2024 10:20:30 GMT\r\n\
                       Authorization: SharedKey honest:bm8gc2lnbmF0dXJlIG9mIHRoaXMgYWNjb3VudCwgYnV0\r\n\r\n"
            }
            Self::EmptyBodies => {
                head(&format!("POST {}", subject.readable_elsewhere()))
                    + "Content-Type: application/json\r\nContent-Length: 4194304\r\n\r\n"
            }
            Self::Unread => {
                head(&format!("GET {}", subject.readable()))
                    + "Accept: application/json;odata=nometadata\r\n\r\n"
            }
        }
        .into_bytes()
    }
}

/// The attackers of one attack. They stop when this is dropped.
pub(super) struct Attackers {
    _tasks: JoinSet<()>,
    /// How many connections were made.
    connected: watch::Sender<usize>,
    count: usize,
}

impl Attackers {
    pub(super) async fn start(attack: Attack, subject: &Subject, open_files: u64) -> Self {
        let bytes = attack.bytes(subject);
        let address = subject.address();
        let count = attack.connections(open_files);
        let connected = watch::Sender::new(0);
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            let (bytes, connected) = (bytes.clone(), connected.clone());
            tasks.spawn(async move {
                loop {
                    // Whatever ends it, the next one follows.
                    let _ = hold(attack, address, &bytes, &connected).await;
                    sleep(PAUSE).await;
                }
            });
        }
        // The first of them are at it.
        tokio::task::yield_now().await;
        Self {
            _tasks: tasks,
            connected,
            count,
        }
    }

    /// Returns when so many connections were made as the attack takes.
    pub(super) async fn are_many(&self) {
        let mut connected = self.connected.subscribe();
        let many = connected.wait_for(|connected| *connected >= self.count);
        // The system makes connections for a program that does not accept them, but not without
        // end.
        let _ = timeout(Duration::from_secs(5), many).await;
    }
}

/// One connection, until the program closes it.
async fn hold(
    attack: Attack,
    address: SocketAddr,
    bytes: &[u8],
    connected: &watch::Sender<usize>,
) -> io::Result<()> {
    let mut stream = connect(attack, address).await?;
    connected.send_modify(|connected| *connected += 1);
    stream.write_all(bytes).await?;
    let mut buffer = vec![0; 4096];
    match attack {
        Attack::BadCredentials => {
            while stream.read(&mut buffer).await? > 0 {
                stream.write_all(bytes).await?;
            }
        }
        Attack::Unread => {
            // Not read until the program gives up: then the connection is an error, which a write
            // notices.
            loop {
                sleep(Duration::from_secs(1)).await;
                stream.write_all(b"G").await?;
            }
        }
        Attack::Silent | Attack::HalfHeads | Attack::EmptyBodies => {
            while stream.read(&mut buffer).await? > 0 {}
        }
    }
    Ok(())
}

async fn connect(attack: Attack, address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if attack == Attack::Unread {
        // The system takes as little as it can in the place of the program.
        socket.set_recv_buffer_size(4096)?;
    }
    socket.connect(address).await
}

/// Before a connection that was closed is opened again.
const PAUSE: Duration = Duration::from_millis(20);
