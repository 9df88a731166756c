experiment "x" {
  duration = "10s"
}

workload "tcp" {
  from = "a"
}

locals "x" {}
