use tablesdk::{TableEntity, TableProperties};

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(ByEmail, row_key = "email_{email}"))]
struct TwoOwners {
    department: String,
    id: u32,
    email: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(index(NoTextByName, row_key = "name_{name}", unique))]
struct NoText {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "e_{id:06}")]
#[table(index(SameTextByName, row_key = "e_name_{name}", unique))]
#[table(index(ByAge, row_key = "{age:03}", unique))]
struct SameText {
    department: String,
    id: u32,
    name: String,
    age: u8,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "e_{id:06}")]
#[table(index(ByTags, row_key = "tags_{tags}", unique))]
#[table(index(ByTeam, row_key = "team_{department}_{team}", unique))]
#[table(index(ByMail, row_key = "mail_{mail}", unique))]
struct BadParts {
    department: String,
    id: u32,
    #[table(json)]
    tags: Vec<String>,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "e_{id:06}")]
#[table(index)]
#[table(index(row_key = "a_{id}"))]
#[table(index(ByA))]
#[table(index(ByB, row_key = "b_{id:06}", uniqe))]
struct BadSyntax {
    department: String,
    id: u32,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "e_{id:06}")]
#[table(index(ByP, row_key = "h_{id:06}", derive))]
#[table(index(ByQ, row_key = "i_{id:06}", derive()))]
#[table(index(ByR, row_key = "j_{id:06}", derive = "PartialEq"))]
#[table(index(ByS, row_key = "k_{id:06}", derive(PartialEq, tablesdk::TableEntity)))]
#[table(index(ByT, row_key = "l_{id:06}", derive(PartialEq), derive(Eq)))]
struct BadDerives {
    department: String,
    id: u32,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "e_{id:06}")]
#[table(index(ByD, partition_key = "{department}", row_key = "d_{id:06}"))]
#[table(index(ByF, partition_key = "f_{name}", row_key = "f_{id:06}"))]
#[table(index(ByG, partition_key = "g_{name}", row_key = "{department}_{id:06}"))]
struct Elsewhere {
    department: String,
    id: u32,
    name: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "{id:06}")]
#[table(index(ByH, partition_key = "h_{name}", row_key = "{id:06}", unique))]
struct NotTold {
    department: String,
    id: u32,
    name: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(projection, index(ProjectionByName, row_key = "name_{name}", unique))]
struct Projection {
    name: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "e_{id:06}", index(GenericByName, row_key = "name_{name}", unique))]
struct Generic<T> {
    department: String,
    id: u32,
    name: T,
}

#[derive(TableProperties)]
#[table(index(ByCity, row_key = "city_{city}", unique))]
struct Address {
    city: String,
}

fn main() {}
