//! Live terminal screens: pure functions from a view to a frame, and the terminal they are drawn on.
//!
//! ```text
//! canary    one canary: the component that `seaway watch` and `seaway demo` share
//! list      many canaries
//! demo      the demo: its story and its users around the component
//! keys      what keys do in `seaway watch`
//! text      cutting, wrapping, bars: text to measure
//! terminal  taking the terminal and giving it back
//! ```

pub mod canary;
pub mod demo;
pub mod keys;
pub mod list;
pub mod terminal;
pub mod text;
