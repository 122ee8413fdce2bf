// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";

import {IPermit2} from "../interfaces/IPermit2.sol";
import {IPermit2Approval} from "../interfaces/IPermit2Proxies.sol";

/// @title What the stand-ins for the contracts of x402 that use Permit2 share
/// @dev Permit2's address is a constant here, where the originals take it from their constructors: so the code can be put
/// at any address. They never revert with `InvalidPermit2Address`.
abstract contract MockPermit2Approval is IPermit2Approval {
    /// @inheritdoc IPermit2Approval
    IPermit2 public constant PERMIT2 = IPermit2(0x000000000022D473030F116dDEE9F6B43aC78BA3);

    /// @dev Submits the payer's approval of Permit2. Whoever has seen it may have submitted it before, so the token may
    /// refuse it.
    function _submitApproval(
        address token,
        address owner,
        uint256 value,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) internal {
        try IERC20Permit(token).permit(owner, address(PERMIT2), value, deadline, v, r, s) {}
        catch Error(string memory reason) {
            emit EIP2612PermitFailedWithReason(token, owner, reason);
        } catch Panic(uint256 errorCode) {
            emit EIP2612PermitFailedWithPanic(token, owner, errorCode);
        } catch (bytes memory data) {
            emit EIP2612PermitFailedWithData(token, owner, data);
        }
    }
}
