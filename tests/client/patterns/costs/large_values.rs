//! Values over 64 KiB.

use object_store::memory::InMemory;
use tablesdk::chunked::Chunked;
use tablesdk::objects::{ObjectRef, Objects};
use tablesdk::{DynamicEntity, TableEntity};

use super::Costs;
use super::patterns::rows;

#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{employee}", row_key = "{year:04}")]
struct Review {
    employee: String,
    year: u16,
    #[table(flatten, prefix = "Text")]
    text: Chunked<String>,
}

/// 200 KiB in which little is repeated.
fn text() -> String {
    let mut state = 1_u32;
    let words = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ["punctual", "sings", "reads", "laughs", "late", "works"][(state >> 16) as usize % 6]
    });
    let mut text = String::new();
    for word in words.take(40_000) {
        text.push_str(word);
        text.push(' ');
    }
    text.truncate(200 * 1024);
    text
}

pub(super) fn run(costs: &mut Costs) {
    chunks(costs);
    objects(costs);
}

fn chunks(costs: &mut Costs) {
    let task = "write and read an employee review of 200 KiB";
    costs.task("Large entities", task);
    let table = costs.table("LongReviews");
    let review = Review {
        employee: "ann".to_owned(),
        year: 2024,
        text: Chunked(text()),
    };
    let chunked = async {
        table.insert(&review).await.unwrap();
        let read = table.get(Review::key("ann", 2024)).await.unwrap().unwrap();
        assert_eq!(read.text, review.text);
    };
    costs.way("`Chunked<String>`", chunked);
    let table = costs.table("ReviewParts");
    let parts = async {
        let mut batch = table.batch("ann");
        for (part, chunk) in review.text.as_bytes().chunks(32 * 1024).enumerate() {
            let text = str::from_utf8(chunk).unwrap();
            let part = DynamicEntity::new("ann", format!("2024_{part:02}"));
            batch = batch.insert(&part.with("Text", text));
        }
        batch.await.unwrap();
        rows(&table, "ann", "2024_").collect().await
    };
    let way = "naive: an entity for each 64 KiB: `batch`, and a row range";
    costs.read(way, 7, parts);
}

#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    photo: ObjectRef,
}

#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "photo_{id:06}_{part:02}")]
struct PhotoPart {
    department: String,
    id: u32,
    part: u8,
    #[table(flatten, prefix = "Bytes")]
    bytes: Chunked<Vec<u8>>,
}

fn objects(costs: &mut Costs) {
    const BYTES: usize = 2_500_000;
    let task = "write and read the photo of an employee, of 2.5 MB";
    costs.task("Large entities", task);
    let table = costs.table("Photos");
    let photos = Objects::new(InMemory::new(), "photos");
    let department = || "Sales".to_owned();
    let object = async {
        let photo = photos.put(vec![7; BYTES]).await.unwrap();
        let (department, id) = (department(), 1);
        let employee = Employee {
            department,
            id,
            photo,
        };
        table.insert(&employee).await.unwrap();
        let read = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
        assert_eq!(photos.get(&read.photo).await.unwrap().len(), BYTES);
    };
    let way = "`Objects`, with two more requests to the object store";
    costs.way(way, object);
    let table = costs.table("PhotoParts");
    let parts = async {
        let mut batch = table.batch("Sales");
        for (part, bytes) in (0..).zip(vec![7; BYTES].chunks(1_000_000)) {
            batch = batch.insert(&PhotoPart {
                department: department(),
                id: 1,
                part,
                bytes: Chunked(bytes.to_vec()),
            });
        }
        batch.await.unwrap();
        let parts = table.query::<PhotoPart>().partition("Sales");
        let parts = parts.rows(PhotoPart::rows().id(1)).collect().await.unwrap();
        let bytes = parts.iter().map(|part| part.bytes.len()).sum::<usize>();
        assert_eq!(bytes, BYTES);
    };
    let way = "entities of 1 MB: `batch`, and a row range; up to 3 MB";
    costs.way(way, parts);
}
