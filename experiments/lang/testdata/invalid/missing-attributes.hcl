experiment "x" {}

node "a" {}

link "l" {}

check "c" {}

figure "f" {}

exclude {}

variable "v" {
  default = 1
  validation {}
}
