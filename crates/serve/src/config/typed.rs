//! What was typed, on its way to a `Config`. Owns parsing and refusal.

/// What the command line says (being written).
#[derive(Debug, Clone, Default)]
pub struct Typed {}

/// Why a configuration was refused.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);
