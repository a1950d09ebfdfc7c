#!/usr/bin/env bash
# Runs every example on the bundled server, and checks its output. --workspace selects the features of a run of all tests, which has built
# them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

unset AZURE_STORAGE_ACCOUNT AZURE_STORAGE_CONNECTION_STRING AZURE_KEY_VAULT_KEY
target=${CARGO_TARGET_DIR:-target}
cargo build --locked --quiet --workspace --examples --bin quickstart

check() {
    local example=$1 program=$target/debug/examples/$1 output
    [ -x "$program" ] || program=$target/debug/$example
    shift
    output=$("$program")
    echo "$output"
    for expected in "$@"; do
        if ! grep -qF -- "$expected" <<<"$output"; then
            echo "FAILED: $example did not show: $expected" >&2
            exit 1
        fi
    done
}

check quickstart \
    'Inserted 1707 earthquakes' \
    'M 6.4  6 Feb, 15:50 UTC' \
    '261 people felt it' \
    'M 6.4  22km NNE of Hualian, Taiwan' \
    'merged: 262 people felt it' \
    'refused: merge entity in "Earthquakes' \
    '("us", "us1000chhc"): 412 UpdateConditionNotSatisfied' \
    'Deleted the table.'

check first_program 'Ada: 62000'

check reviews \
    'found by a row range' \
    'Grace Hopper' \
    '2019: 1 of 5 by the manager, 4 by peers' \
    '000223_2021: 3 of 5 by the manager, 2 by peers' \
    'the row key cannot be made as "{employee:06}_{year:04}": `employee`: the value 1000000 is out of range'

check expense_claims \
    '2024-04-09: 111.5 for lunch' \
    '2024-03-10: 81.5 for a hotel' \
    '2516896457999999999_0099' \
    '91 deleted by 1 request, 9 left'

check company \
    'headcount 1, budget 250000' \
    '000001: Lovelace, Ada (employee)' \
    'f00001: Alan Turing at 900 a day' \
    'z00001: a Desk, which this program does not know' \
    '   2 rows' \
    'the entity is a "Department" by its property "EntityType", expected "Employee.v2" or "Employee"'

check counters \
    '   600 views' \
    '   630 views' \
    'views~0'

check departments \
    'Sales, 2 employees' \
    '000224 Turing' \
    '80000 dollars' \
    'Hopper: floor 1' \
    'Turing: floor 2'

check employee_photos \
    'a photo of 3000000 bytes' \
    'Remarks__3: Edm.String' \
    'remarks of 102000 bytes' \
    '2000000 bytes now' \
    '2 of 2 are recent' \
    '1 is in use and 1 was deleted with 3000000 bytes' \
    'not found: true'

check employees \
    'email_jonesj@contoso.com' \
    'Jones, number 223' \
    'Jones 224' \
    'taken in the index ByEmail' \
    'Smith 223' \
    'Legal 1' \
    '1 orphaned entry deleted, 1 of this hour left'

check index_entities \
    'EmployeeIDs String("000152,000223")' \
    'Legal 000007' \
    '0 Jones, 1 Smith' \
    'property "EmployeeIDs": the value is too large' \
    'stored: false' \
    '100001 employees in 1800012 bytes'

check archive \
    'Employee 7 is in the archive' \
    'in the table: false' \
    'changed: true' \
    'in the archive: false' \
    'conflict: true' \
    'Smith has replaced Employee 7' \
    '249 would be moved' \
    '249 moved by 6 requests' \
    '250 employees are left'

check leases \
    'token 1' \
    'free: false' \
    'token 2, server 1 holds it: false' \
    'refused: true' \
    'LeaseLost: renew lease' \
    'was taken over by "server 2" (token 2, ours was 1)' \
    'employee 1: payment 1 by server 1' \
    'employee 2: payment 101 by server 2'

check login_log \
    '2100 logins in 7 tables' \
    '2024-03-11 22:04:48' \
    '5 in all' \
    '700 deleted by 7 batches' \
    '4 tables, without a look at their logins' \
    '600 logins are left'

check sessions \
    'her sessions: desk' \
    'the laptop has one: false' \
    '3 are still stored' \
    'the laptop was over: true' \
    'her sessions: new phone, desk' \
    '1 removed, more: false' \
    '2 are stored'

check key_vault \
    'a stand-in for the vault' \
    'AB 12 34 56 C'

check log_files \
    '10 entities' \
    '60 lines of 2 objects' \
    '2024-03-15 12:03:30' \
    '5 entities' \
    '10 objects are too new'

check managed_identity \
    'stand-ins for the account and its identity' \
    'The last runs of daily-report:' \
    'by process '

check message_year \
    '2 years are 4 entities of the service' \
    '2024: 3651 messages' \
    '15 March: Some(11), the last day: None' \
    '96 photos' \
    '0 writes did not end'

check messages \
    '09:00 ##' \
    '17:00 ############' \
    '2024-03-14: 1 messages' \
    '2024-03-15: 15 messages' \
    '2024-03-15: 12'

check readings \
    '4800 readings in 16 partitions' \
    '00:00 sensor-02: 19.0 °C' \
    '00:00 sensor-05: 20.5 °C' \
    '35 of 40' \
    '01:30 sensor-07: 21.0 °C'

check encryption \
    'Grace has the number AB 12 34 52 C' \
    'InsuranceNumber: 60 bytes' \
    'Email__eq: 32 bytes' \
    'property "InsuranceNumber": it cannot be decrypted'

check outbox \
    'Sales and service' \
    '1 waiting' \
    'mail 2: you are Sales and service now' \
    'mail 4: you are Sales worldwide now' \
    '0 waiting' \
    '0 set aside after 10 attempts'

check totals \
    'Sales: 10 employees, 500110 in salaries' \
    'true' \
    '{"Sales"} differ' \
    'Sales: 11 employees, 550209 in salaries'

check cached_settings \
    '1 query' \
    'green' \
    'green for a minute' \
    'red then'

check blocking \
    'Grace is number 2' \
    'Edsger'

check bulk_load \
    'Wrote 20000 entities in 200 requests' \
    'Read 20000 entities' \
    'the warmest measurement was 29.9 °C'

check sas \
    'order 0002 is packed' \
    'an insert: AuthorizationPermissionMismatch' \
    'policy packers allows ru' \
    'order 0002 was marked as sent' \
    'without the policy it is denied: true' \
    'Deleted the table.'
