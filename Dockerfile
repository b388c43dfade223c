# The one binary, static, in an image with nothing else but root certificates.
#
#   docker build -t seaway:0.1.0 .
#   docker buildx build --platform linux/amd64,linux/arm64 -t REGISTRY/seaway:0.1.0 --push .

FROM rust:1.95.0-alpine3.23 AS build
# A C compiler for ring and mimalloc; the roots are copied below.
RUN apk add --no-cache build-base ca-certificates
WORKDIR /src
COPY . .
# Set by BuildKit, from --platform.
ARG TARGETARCH
# musl targets link statically. The name of the target is the path of the result, so it is given and not left to the host.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target,id=seaway-target-${TARGETARCH} \
    set -eu; \
    case "${TARGETARCH}" in \
      amd64) target=x86_64-unknown-linux-musl ;; \
      arm64) target=aarch64-unknown-linux-musl ;; \
      *) echo "no target for TARGETARCH=${TARGETARCH}; use amd64 or arm64" >&2; exit 1 ;; \
    esac; \
    cargo build --release --locked --bin seaway --target "${target}"; \
    cp "target/${target}/release/seaway" /seaway; \
    /seaway --version

FROM scratch
LABEL org.opencontainers.image.title="Seaway" \
      org.opencontainers.image.description="Progressive delivery for Kubernetes, a drop-in for Flagger" \
      org.opencontainers.image.licenses="Apache-2.0"
# Roots for hooks and metric queries over https. SSL_CERT_FILE names others.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY LICENSE /LICENSE
COPY --from=build /seaway /seaway
# A number, so that runAsNonRoot can be checked.
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/seaway"]
CMD ["operator"]
