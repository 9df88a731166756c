experiment "x" {
  duration = "10s"
}

locals {
  a = 1
}

locals {
  a = 2
}
