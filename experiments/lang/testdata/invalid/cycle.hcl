experiment "x" {
  duration = "10s"
}

locals {
  a = local.b + 1
  b = local.c
  c = local.a
  d = local.d
}
