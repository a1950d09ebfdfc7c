use tablesdk::{TableEntity, TableProperties};

#[derive(Clone, Debug, TableProperties)]
struct Secret {
    #[table(encrypt)]
    name: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{ward}", row_key = "patient_{id:06}")]
#[table(index(ByRoom, row_key = "room_{room}_{id:06}"))]
struct Patient {
    ward: String,
    id: u32,
    room: String,
    #[table(flatten)]
    secret: Secret,
}

#[derive(TableEntity)]
#[table(by = "row_key")]
enum Row {
    Patient(Patient),
}

fn main() {}
