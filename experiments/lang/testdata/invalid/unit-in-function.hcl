experiment "x" {
  duration = "10s"
}

locals {
  a = bdp(100, "40ms", 1)
  b = bdp("100mbit", "40", 1)
  c = rate("100")
  d = seconds("1parsec")
  e = bdp("1mbit", "1ms", -1)
}
