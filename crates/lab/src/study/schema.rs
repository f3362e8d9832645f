//! Owns the JSON Schema of a study file, for editors that check and complete TOML with it. It does not decide whether
//! a study is valid: the reader does, and says more. A test checks that both know the same keys.
//! Start reading at [`schema`].

use serde_json::{Value, json};

use super::metric_names;
use crate::{adapters, clients};

/// The schema (draft 2020-12) of a study.
pub fn schema() -> Value {
    let metrics = metric_names();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A study of joust",
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "question", "contender"],
        "properties": {
            "name": {
                "description": "Names the folder of results: letters, digits, hyphens, underscores.",
                "type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": super::NAME_MAX,
            },
            "question": { "description": "What the study asks, in a sentence.", "type": "string" },
            "metrics": {
                "description": "The metrics that get a verdict; the first is the primary one.",
                "type": "array", "minItems": 1, "uniqueItems": true, "items": { "enum": metrics },
            },
            "margin": quantity("The smallest difference that matters: \"2%\"."),
            "budget": quantity("Longest time for the whole run: \"10m\"."),
            "keep_disturbed": {
                "description": "Whether visits of a disturbed machine are used instead of being made again.",
                "type": "boolean",
            },
            "seed": whole("Seed of the order of visits and of the bootstrap.", 0),
            "reference": {
                "description": "The contender that every other one is compared with; without it every pair is compared.",
                "type": "string",
            },
            "declared": {
                "description": "Parity switches that differ on purpose (`joust servers`), so that they are no finding.",
                "type": "array", "items": { "type": "string" },
            },
            "workload": workload("What contenders are asked to do."),
            "axis": { "type": "array", "items": axis() },
            "contender": { "type": "array", "minItems": 1, "items": contender() },
            "search": table("A search for the highest rate in each visit, for the metric `capacity`.", json!({
                "goals": { "description": "Conditions that must hold: \"p99<10ms,errors<0.1%\".", "type": "string" },
                "precision": quantity("Maximum width of the interval of the rate: \"5%\"."),
                "tries": whole("Maximum number of loads in a search.", 1),
            })),
            "blocks": table("How many blocks; a block visits every contender in every cell once.", json!({
                "min": whole("Minimum number of blocks; a cell cannot end before.", 2),
                "max": whole("Maximum number of blocks.", 2),
                "half_width": quantity("A cell ends when the primary metric's intervals are this narrow."),
            })),
            "visit": table("How long a visit is.", json!({
                "warm_up": quantity("Load that is always cut off."),
                "settle": quantity("Longest further warm-up, until the rate is stable."),
                "measure": quantity("Load that is measured."),
            })),
            "short": table("What --short changes.", json!({
                "budget": quantity("As above."), "warm_up": quantity("As in [visit]."),
                "settle": quantity("As in [visit]."), "measure": quantity("As in [visit]."),
                "min": whole("As in [blocks].", 2), "max": whole("As in [blocks].", 2),
                "sleep": quantity("Instead of the workload's."),
            })),
            "published": published(&metrics),
        },
    })
}

fn table(about: &str, properties: Value) -> Value {
    json!({
        "description": about, "type": "object", "additionalProperties": false, "properties": properties,
    })
}

fn quantity(about: &str) -> Value {
    json!({ "description": about, "type": ["string", "number"] })
}

fn whole(about: &str, least: u64) -> Value {
    json!({ "description": about, "type": "integer", "minimum": least })
}

fn workload(about: &str) -> Value {
    let names: Vec<&str> = clients::ALL.iter().map(|client| client.name).collect();
    table(
        about,
        json!({
            "page": quantity("Size of the page: 3361, \"100KB\"."),
            "connections": whole("Concurrent connections.", 1),
            "keep_alive": { "description": "Whether connections are used again.", "type": "boolean" },
            "threads": whole("Threads of the generator.", 1),
            "timeout": quantity("Longest wait for a reply: \"5s\"."),
            "rate": quantity("Open loop: requests due per second, \"500/s\"."),
            "client": { "description": "The load generator.", "enum": names },
            "target": { "description": "A path other than the page's: a program's.", "type": "string" },
            "verify": quantity("Bodies that are hashed under load and compared: \"auto\", a share, or \"off\"."),
            "sleep": quantity("Requests go to a CGI program of the site that sleeps this long: \"6s\"."),
        }),
    )
}

fn axis() -> Value {
    let list = |about: &str| json!({ "description": about, "type": "array", "minItems": 1 });
    let mut axis = table(
        "A list of values; axes are crossed.",
        json!({
            "over": {
                "description": "A key of [workload] (makes cells) or a setting of servers (makes contenders).",
                "type": "string",
            },
            "values": list("Its values."),
            "with": { "description": "Keys that change together with it, value by value.", "type": "object" },
            "labels": list("Names of the points, instead of `key=value`."),
            "of": list("Contenders it applies to; without it all that know the setting and do not set it."),
            "as": { "description": "\"contenders\": compare along a key of the workload.",
                    "enum": ["cells", "contenders"] },
            "short": list("Values, or labels, that --short keeps."),
        }),
    );
    axis["required"] = json!(["over", "values"]);
    axis
}

fn contender() -> Value {
    let servers: Vec<&str> = adapters::ALL.iter().map(|adapter| adapter.name).collect();
    let mut contender = table(
        "One of the servers that are compared.",
        json!({
            "name": { "description": "Its name in reports; unique.", "type": "string" },
            "server": { "description": "The server: `joust servers` lists them.", "enum": servers },
            "settings": {
                "description": "Settings by the names of the server's documentation: `joust servers NAME`.",
                "type": "object",
                "additionalProperties": { "type": ["boolean", "integer", "string"] },
            },
            "work": workload("Keys of [workload] for this contender alone."),
            "only": {
                "description": "Restricts it to the cells with these values of axes; with several tables a cell must match one.",
                "type": ["object", "array"], "items": { "type": "object" },
            },
        }),
    );
    contender["required"] = json!(["name", "server"]);
    contender
}

fn figures() -> Value {
    json!({
        "description": "Rows of [contender, cell, value], with \"of what\" behind where it is needed.",
        "type": "array", "minItems": 1,
        "items": { "type": "array", "minItems": 3, "maxItems": 4 },
    })
}

fn published(metrics: &[&str]) -> Value {
    let mut published = table(
        "Published figures, shown beside the measured ones.",
        json!({
            "source": { "description": "Author, place and date.", "type": "string" },
            "machine": { "description": "Machine and versions.", "type": "string" },
            "claim": { "description": "The conclusion of the source.", "type": "string" },
            "metric": { "description": "The metric of `figures`; throughput if left out.", "enum": metrics },
            "over": { "description": "The figures are ratios over this contender.", "type": "string" },
            "figures": figures(),
            "figures_of": {
                "description": "Figures of further metrics: figures_of.memory = [rows].",
                "type": "object", "propertyNames": { "enum": metrics },
                "additionalProperties": figures(),
            },
        }),
    );
    published["required"] = json!(["source", "machine", "claim", "figures"]);
    published
}

#[cfg(test)]
mod tests {
    use super::super::{BLOCKS, SEARCH, SHORT, TOP, VISIT, axes, contenders, published, work};
    use super::*;

    /// Keys of the object at that place, sorted.
    fn keys(at: &str) -> Vec<String> {
        let schema = schema();
        let place = schema.pointer(at).unwrap_or_else(|| panic!("{at}"));
        let mut keys: Vec<String> = place.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    }

    #[test]
    fn the_schema_knows_the_keys_that_the_reader_knows() {
        let sections: [(&str, &[&str]); 9] = [
            ("/properties", &TOP),
            ("/properties/workload/properties", &work::KEYS),
            ("/properties/contender/items/properties/work/properties", &work::KEYS),
            ("/properties/blocks/properties", &BLOCKS),
            ("/properties/visit/properties", &VISIT),
            ("/properties/short/properties", &SHORT),
            ("/properties/search/properties", &SEARCH),
            ("/properties/axis/items/properties", &axes::AXIS),
            ("/properties/contender/items/properties", &contenders::CONTENDER),
        ];
        for (at, known) in sections {
            let mut known: Vec<String> = known.iter().map(|key| (*key).to_owned()).collect();
            known.sort();
            assert_eq!(keys(at), known, "{at}");
        }
        assert_eq!(keys("/properties/published/properties").len(), published::PUBLISHED.len());
    }

    #[test]
    fn the_schema_that_is_published_is_this_one() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/study.schema.json");
        let published: Value =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let hint = "joust run --schema > docs/study.schema.json writes it anew";
        assert!(published == schema(), "{hint}");
    }
}
