experiment "unknown-series" {
  duration = "1s"
}

node "a" {}
node "b" {}

link "l" {
  between = ["a", "b"]
}

workload "ping" "probe" {
  from = "a"
  to   = "b"
}

figure "f" {
  kind = "time"
  y    = ["probe.rtt_ms"]
}
