//! Values that pass from one Lua state to another. Owns which may pass. Start reading at [`Carried`].

use mlua::{Lua, Value};

/// A value outside of any state.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Carried {
    Nil,
    Boolean(bool),
    Number(f64),
    Text(Vec<u8>),
    Table(Vec<(Carried, Carried)>),
}

/// Deepest nesting of tables; a table that contains itself would never end.
const DEPTH_MAX: usize = 100;

impl Carried {
    /// Copies a value out of its state.
    ///
    /// # Errors
    /// wrk's message for a value that cannot leave its state.
    pub(super) fn take(value: &Value) -> Result<Self, String> {
        Self::take_within(value, DEPTH_MAX)
    }

    fn take_within(value: &Value, depth: usize) -> Result<Self, String> {
        Ok(match value {
            Value::Nil => Self::Nil,
            Value::Boolean(value) => Self::Boolean(*value),
            Value::Integer(value) => Self::Number(*value as f64),
            Value::Number(value) => Self::Number(*value),
            Value::String(value) => Self::Text(value.as_bytes().to_vec()),
            Value::Table(table) if depth > 0 => {
                let mut entries = Vec::new();
                for pair in table.pairs::<Value, Value>() {
                    let (key, value) = pair.map_err(|error| error.to_string())?;
                    let key = Self::take_within(&key, depth - 1)?;
                    entries.push((key, Self::take_within(&value, depth - 1)?));
                }
                Self::Table(entries)
            }
            Value::Table(_) => return Err("cannot transfer so deep a table to thread".to_owned()),
            other => return Err(format!("cannot transfer '{}' to thread", other.type_name())),
        })
    }

    /// Copies it into a state.
    pub(super) fn put(&self, lua: &Lua) -> mlua::Result<Value> {
        Ok(match self {
            Self::Nil => Value::Nil,
            Self::Boolean(value) => Value::Boolean(*value),
            Self::Number(value) => Value::Number(*value),
            Self::Text(bytes) => Value::String(lua.create_string(bytes)?),
            Self::Table(entries) => {
                let table = lua.create_table()?;
                for (key, value) in entries {
                    table.raw_set(key.put(lua)?, value.put(lua)?)?;
                }
                Value::Table(table)
            }
        })
    }
}
