//! The controller by its commands and by its fabrics commands.

mod commands;
mod fabrics;
mod fragile;
