//! Bad objects: refused on the object itself, nothing else is written, others go on, the corrected object recovers.
