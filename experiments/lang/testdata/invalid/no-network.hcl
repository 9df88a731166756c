experiment "x" {
  duration = "10s"
}

workload "tcp" "t" {
  from = "a"
  to   = "host"
}
