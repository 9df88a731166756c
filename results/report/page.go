package report

func renderPage(d *data) ([]byte, error) { return []byte("<!doctype html>"), nil }
