experiment "x" {
  duration = "10s"
}

locals {
  a = bpd("1mbit", "1ms", 1)
  b = foo()
}
