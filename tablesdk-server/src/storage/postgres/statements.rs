//! The statements of each round trip.
//!
//! They are kept to what PostgreSQL and the databases that follow it have in common: no function of
//! our own, no advisory lock, no isolation level but the default one of PostgreSQL. What a
//! statement depends on is compared within it.

/// Settings of each connection. A database that does not have one works without it.
///
/// It ends a statement before the server gives it up, and soon after the server has ended. Each
/// statement reads or writes few rows by the primary key, so a plan that reads the whole table is
/// never right, whatever the statistics of a new table say. At a higher isolation level, which may
/// be the default of a database, PostgreSQL refuses statements that others are in the way of, also
/// reads. Databases that only follow it keep their level.
pub(super) const SETTINGS: [&str; 8] = [
    "SELECT set_config('default_transaction_isolation', 'read committed', false) \
        WHERE version() LIKE 'PostgreSQL%'",
    "SET statement_timeout = '10s'",
    "SET client_connection_check_interval = '1s'",
    "SET enable_bitmapscan = off",
    "SET enable_hashjoin = off",
    "SET enable_mergejoin = off",
    "SET enable_seqscan = off",
    "SET enable_sort = off",
];

/// The records under single keys, removed ones, too.
pub(super) const KEYS: &str =
    "SELECT key, version, record FROM tablesdk_records WHERE key = ANY($1)";

/// The same, and the first records of a range, without versions, up to a number of them and a
/// number of bytes.
///
/// The remainders of removed records are in another index, so a scan does not step over them.
pub(super) const KEYS_AND_RANGE: &str = "\
    SELECT key, version, record FROM tablesdk_records WHERE key = ANY($1) \
    UNION ALL \
    SELECT key, NULL, record FROM ( \
        SELECT key, record, \
            sum(octet_length(record)) OVER (ORDER BY key ROWS UNBOUNDED PRECEDING) \
                - octet_length(record) AS bytes_before \
        FROM ( \
            SELECT key, record FROM tablesdk_records \
            WHERE key >= $2 AND key < $3 AND removed_at IS NULL \
            ORDER BY key LIMIT $4 \
        ) AS first \
    ) AS part WHERE bytes_before < $5";

/// Writes and removes records if all records are of the expected versions; else divides by zero,
/// which undoes everything.
///
/// $1 to $3 are the keys, expected versions and new records of the writes, sorted by key; $4 is the
/// new version; $5 and $6 are keys and versions of what is only read. A row that another
/// transaction holds is waited for, and compared as that one leaves it. What is only read is not
/// locked, or all writes to a table would wait for each other at its record. A removed record,
/// whose version is expected to be missing, is replaced if it is older: nothing was under its key.
/// CockroachDB permits one change of a table in a statement.
pub(super) const COMMIT: &str = "\
    WITH written AS ( \
        INSERT INTO tablesdk_records AS r (key, version, replaced, record, removed_at) \
        SELECT i.key, $4, i.expected, i.record, CASE WHEN i.record IS NULL THEN now() END \
        FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) AS i (key, expected, record) \
        LEFT JOIN tablesdk_records AS e ON e.key = i.key AND e.version = i.expected \
        WHERE i.expected IS NULL OR e.key IS NOT NULL \
        ON CONFLICT (key) DO UPDATE \
        SET version = excluded.version, replaced = excluded.replaced, \
            record = excluded.record, removed_at = excluded.removed_at \
        WHERE r.version = excluded.replaced \
            OR excluded.replaced IS NULL AND r.record IS NULL AND r.version < excluded.version \
        RETURNING 1 \
    ), unchanged AS ( \
        SELECT 1 FROM unnest($5::bytea[], $6::bigint[]) AS c (key, expected) \
        JOIN tablesdk_records AS r ON r.key = c.key AND r.version = c.expected \
    ) \
    SELECT 1 / CASE \
        WHEN (SELECT count(*) FROM written) + (SELECT count(*) FROM unchanged) \
            = cardinality($1::bytea[]) + cardinality($5::bytea[]) \
        THEN 1 ELSE 0 END";

/// Removes the first records of a range, and returns their keys, also of those that another server
/// has removed meanwhile.
pub(super) const REMOVE: &str = "\
    WITH found AS ( \
        SELECT key FROM tablesdk_records WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3 \
    ), removed AS ( \
        DELETE FROM tablesdk_records AS r USING found AS f WHERE r.key = f.key \
    ) \
    SELECT key FROM found";

/// Deletes what is left of removed records. A record that is written again meanwhile is not removed
/// any more, and stays.
pub(super) const SWEEP: &str = "\
    WITH swept AS ( \
        DELETE FROM tablesdk_records \
        WHERE key IN ( \
            SELECT key FROM tablesdk_records \
            WHERE removed_at < now() - interval '15 minutes' LIMIT 1000 \
        ) AND removed_at < now() - interval '15 minutes' \
        RETURNING 1 \
    ) \
    SELECT count(*) FROM swept";

/// The limit in [`SWEEP`].
pub(super) const SWEEP_MAX: i64 = 1000;

/// A query with the result `on` if the database is read-only.
pub(super) const PROBE: &str = "SHOW transaction_read_only";
