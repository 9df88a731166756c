experiment "x" {
  duration = "10s"
}

locals {
  a = 1e9999
}

workload "tcp" "t" {
  from  = "a"
  to    = "b"
  flows = 1e30
}
