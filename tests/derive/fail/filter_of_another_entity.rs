//! A filter uses the columns of one entity.
#[derive(tablesdk::TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    age: i32,
}

#[derive(tablesdk::TableEntity)]
struct Dog {
    #[table(partition_key)]
    owner: String,
    #[table(row_key)]
    name: String,
    age: i32,
}

fn query(table: &tablesdk::TableClient) {
    use tablesdk::TableEntity;
    let dog = Dog::columns();
    let _ = table.query::<Person>().filter(|_| dog.age.ge(5));
    let _ = table.query::<Person>().filter(|e| e.age.ge(5) & dog.age.ge(5));
    let _ = table.query::<Person>().select(|_| dog.name);
    let _ = table.patch::<Person>(Person::key("UK", "1")).set(|_| dog.age, 5);
}

fn main() {}
