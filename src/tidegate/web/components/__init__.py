"""What tabs are made of: charts, tables, stations, lists of decisions, and the page's elements that hold them."""
