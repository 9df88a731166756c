experiment "x" {
  duration = "10s"
}

variable "flows" {
  default = 1
}

locals {
  rate = "1mbit"
  a    = var.flow + local.rat + hots.cores + host.core + sweep.buffer
}

sweep {
  bufer = [1]
}

workload "tcp" "t" {
  from = cubic
  to   = run.seeed
}
