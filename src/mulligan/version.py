"""Hold the version of Mulligan; packaging reads it from here."""

__version__ = "0.1.0"
