//! Clients that encrypt: two, as in two processes, with the keys of one table. The keys change while they work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;
use tablesdk::encryption::{Keyring, LocalKey};
use tablesdk::{TableClient, TableServiceClient};
use tokio::sync::RwLock;

use crate::entity::{Numbered, Secret};

pub(crate) struct Sealed {
    /// Each has loaded the keys itself.
    clients: Vec<(TableClient, Keyring)>,
    /// Not through the proxy.
    pub(crate) direct: TableClient,
    /// By how many seconds the responses to the clients are dated ahead.
    ahead: Arc<AtomicU64>,
    /// Held by each operation, so that time passes between two of them.
    pub(crate) gate: RwLock<()>,
}

impl Sealed {
    /// `ahead` is what the transports of the clients add to the time of the service.
    pub(crate) async fn open(
        direct: &TableServiceClient,
        clients: &[TableServiceClient],
        ahead: Arc<AtomicU64>,
    ) -> Self {
        direct.table(KEYS).create_table().await.unwrap();
        direct.table(Secret::TABLE).create_table().await.unwrap();
        let keyring = open(direct).await;
        let direct = direct.table(Secret::TABLE).with_encryption(keyring);
        let mut opened = Vec::new();
        for client in clients {
            let keyring = open(client).await;
            let table = client.table(Secret::TABLE).with_encryption(keyring.clone());
            opened.push((table, keyring));
        }
        Self {
            clients: opened,
            direct,
            ahead,
            gate: RwLock::default(),
        }
    }

    pub(crate) fn table(&self, rng: &mut Rng) -> &TableClient {
        &self.clients[rng.usize(..self.clients.len())].0
    }

    /// Makes a new key. Of the clients, only the first one knows it then.
    pub(crate) async fn rotate(&self) {
        while self.clients[0].1.rotate().await.is_err() {}
    }

    /// Lets so much time pass that the new key encrypts. No operation is under way meanwhile.
    pub(crate) async fn let_new_key_encrypt(&self) {
        let _shut = self.gate.write().await;
        self.ahead.fetch_add(2 * 3600, Ordering::SeqCst);
        for (table, _) in &self.clients {
            // A response shows the time.
            while table.get(Secret::key("none", "none")).await.is_err() {}
        }
    }
}

async fn open(client: &TableServiceClient) -> Keyring {
    loop {
        let key = LocalKey::new("2024-01", [7; 32]);
        if let Ok(keyring) = Keyring::open(&client.table(KEYS), key).await {
            return keyring;
        }
    }
}

const KEYS: &str = "Keys";
