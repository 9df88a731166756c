experiment "x" {
  duration = "10s"
}

topology "dumbell" "net" {}

workload "udp" "a" {}

instrument "perv" "b" {}
