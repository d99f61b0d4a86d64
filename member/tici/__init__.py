"""TiCI: full-text search. Its meta servers keep the catalogue of indexes, its workers build their fragments."""
