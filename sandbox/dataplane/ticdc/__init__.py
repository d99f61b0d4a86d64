"""TiCDC: captures with one owner, which spreads the tables of changefeeds over them."""
