#!/bin/sh
# The object store with three accounts: who makes the bucket, the portal, and nobody else.
set -eu
umask 077
cat > /run/slipway/s3.json <<JSON
{
  "identities": [
    {
      "name": "setup",
      "credentials": [{"accessKey": "$S3_ADMIN_ACCESS_KEY_ID", "secretKey": "$S3_ADMIN_SECRET_ACCESS_KEY"}],
      "actions": ["Admin:slipway-models", "Read:slipway-models", "List:slipway-models", "Write:slipway-models"]
    },
    {
      "name": "portal",
      "credentials": [{"accessKey": "$AWS_ACCESS_KEY_ID", "secretKey": "$AWS_SECRET_ACCESS_KEY"}],
      "actions": ["Read:slipway-models", "List:slipway-models", "Write:slipway-models"]
    }
  ]
}
JSON
exec weed server -dir=/data -s3 -s3.port=8333 -s3.config=/run/slipway/s3.json
