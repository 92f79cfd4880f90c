//! Nothing here: the tests that cross crates stand in `tests/tests`.
