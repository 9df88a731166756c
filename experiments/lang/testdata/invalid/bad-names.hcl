experiment "a/b" {
  duration = "1s"
}

node "a b" {}

workload "tcp" "9x" {
  from = "a"
  to   = "b"
}
